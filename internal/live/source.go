package live

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/export/ovs"
)

// Source asks one target. It connects when it is first asked, and again after every
// error. It is not safe for concurrent use.
type Source struct {
	Target     string // as ovs-appctl's -t has it
	Iterations int    // rows of the iteration history to ask for
	Millis     int    // rows of the millisecond history to ask for

	client *appctl.Client
	form   Form
}

const (
	perfShow  = "dpif-netdev/pmd-perf-show"
	statsShow = "dpif-netdev/pmd-stats-show"
)

// Fetch looks at the target. An error is one of connecting, of the connection, or what
// the target answered (*appctl.ServerError).
func (s *Source) Fetch(ctx context.Context) (*Sample, error) {
	sample, err := s.fetch(ctx)
	if err != nil {
		s.Close()
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("%s does not answer: %w", s.Target, context.DeadlineExceeded)
		}
		return nil, err
	}
	return sample, nil
}

// Close closes the connection, if there is one.
func (s *Source) Close() {
	if s.client != nil {
		s.client.Close()
		s.client = nil
	}
}

func (s *Source) connect(ctx context.Context) error {
	if s.client != nil {
		return nil
	}
	c, err := appctl.Dial(ctx, s.Target)
	if err != nil {
		return err
	}
	s.client, s.form = c, JSON
	err = c.SetJSON(ctx)
	if _, refused := errors.AsType[*appctl.ServerError](err); refused {
		s.form, err = Text, nil // Open vSwitch up to 3.3
	}
	return err
}

func (s *Source) fetch(ctx context.Context) (*Sample, error) {
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	sample := &Sample{Form: s.form, Sent: time.Now()}
	var args []string
	if s.Iterations > 0 {
		args = append(args, "-it", strconv.Itoa(s.Iterations))
	}
	if s.Millis > 0 {
		args = append(args, "-ms", strconv.Itoa(s.Millis))
	}
	perf, a, err := s.call(ctx, perfShow, args...)
	if err != nil {
		return nil, err
	}
	if a != nil {
		sample.read(a)
		sample.Arrived = time.Now()
		return sample, nil
	}
	stats, _, err := s.call(ctx, statsShow)
	if err != nil {
		return nil, err
	}
	sample.Form, sample.Arrived = Text, time.Now()
	perfReport, err := ovs.ParsePerf(perf)
	if err != nil {
		return nil, err
	}
	statsReport, err := ovs.ParseStats(stats)
	if err != nil {
		return nil, err
	}
	sample.readText(perfReport, statsReport)
	return sample, nil
}

// call returns the answer as a text, or as a document.
func (s *Source) call(ctx context.Context, command string, args ...string) (string, *answer, error) {
	text, err := s.client.Call(ctx, command, args...)
	if err != nil || s.form == Text {
		return text, nil, err
	}
	a, err := parseAnswer(text)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", command, err)
	}
	if a.Reply != nil {
		return *a.Reply, nil, nil
	}
	return "", a, nil
}
