package confusion

import (
	"fmt"
	"os"
	"time"
)

// listen finds out for a while how quiet the machine is, in which nothing is provoked.
func (t *Table) listen(tid int) error {
	const naps, nap = 100, time.Millisecond
	waited := func() (time.Duration, error) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/schedstat", tid))
		return time.Duration(field(text, 1)), err
	}
	begun := time.Now()
	was, err := waited()
	if err != nil {
		return err
	}
	for range naps {
		before := time.Now()
		time.Sleep(nap)
		t.Late = max(t.Late, time.Since(before)-nap)
	}
	now, err := waited()
	if err != nil {
		return err
	}
	t.Others = max(t.Others, float64(now-was)/float64(time.Since(begun)))
	return nil
}
