package perf

import (
	"flag"
	"os"
	"testing"

	"github.com/pmdperf/pmdperf/internal/need"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if need.Long() {
		if err := flag.Set("rapid.checks", "2000"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
