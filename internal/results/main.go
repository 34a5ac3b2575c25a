// Command results writes docs/results.md from the JSON of experiments.
//
//	pmdperf bench overhead --format json >docs/results/overhead.json
//	go run ./internal/results docs/results >docs/results.md
//
// It reads overhead.json, reload.json, profiles.json, vhost.json, self.json and
// causes.json in that directory; one that is missing leaves its section out. What the
// page says of others' measurements is in published.go, with where it was said.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pmdperf/pmdperf/internal/experiment"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "results:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: results DIRECTORY")
	}
	p, err := read(args[0])
	if err != nil {
		return err
	}
	var b bytes.Buffer
	p.write(&b)
	_, err = stdout.Write(b.Bytes())
	return err
}

// page is what the page is made of. What was not run is nil.
type page struct {
	overhead, reload, profiles, vhost, self *experiment.Report
	causes                                  *causes
}

// causes is what the page needs of the table of causes.
type causes struct {
	User bool `json:"user"`
	Rows []struct {
		Provocation string  `json:"provocation"`
		Made        int     `json:"made"`
		Named       int     `json:"named"`
		First       int     `json:"first"`
		Wrong       int     `json:"wrong"`
		Share       float64 `json:"share"`
		Skipped     string  `json:"skipped"`
	} `json:"rows"`
}

// read reads what there is in a directory.
func read(dir string) (*page, error) {
	p := new(page)
	found := false
	open := func(name string, use func(io.Reader) error) error {
		f, err := os.Open(filepath.Join(dir, name+".json"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer f.Close()
		found = true
		if err := use(f); err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
		return nil
	}
	for name, to := range map[string]**experiment.Report{
		"overhead": &p.overhead, "reload": &p.reload, "profiles": &p.profiles, "vhost": &p.vhost, "self": &p.self,
	} {
		err := open(name, func(in io.Reader) error {
			r, err := experiment.ReadJSON(in)
			if err == nil && r.Experiment != name {
				err = fmt.Errorf("it is of experiment %s", r.Experiment)
			}
			*to = r
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	err := open("causes", func(in io.Reader) error {
		p.causes = new(causes)
		return json.NewDecoder(in).Decode(p.causes)
	})
	if err == nil && !found {
		err = fmt.Errorf("%s has no results: run 'pmdperf bench overhead --format json' and the like, and put the output there", dir)
	}
	return p, err
}
