// Package layers holds tests of the module as a whole: which package may import
// what, and what no file may contain.
package layers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	module = "github.com/pmdperf/pmdperf"

	hdrhistogram = "github.com/HdrHistogram/hdrhistogram-go"
	prometheus   = "github.com/prometheus/client_golang"
	promModel    = "github.com/prometheus/client_model google.golang.org/protobuf" // what client_golang's metrics are written into
	ebpf         = "github.com/cilium/ebpf"
	netlink      = "github.com/vishvananda/netlink"
	xperf        = "golang.org/x/perf"
	xsys         = "golang.org/x/sys"

	terminal = "charm.land/bubbletea/v2 charm.land/lipgloss/v2 charm.land/bubbles/v2 github.com/charmbracelet/x/ansi"

	anything = "*"
)

// layer says what one package may import besides the standard library. Tests
// (_test.go) are free.
type layer struct {
	path    string // the package, or "tree/..." for it and all below
	imports string // packages of this module, blank-separated
	modules string // modules of others, blank-separated
}

// layers is the whole architecture, from the bottom up. A package that a row
// doesn't name, it may not import: a new arrow is a decision, made here.
var layers = []layer{
	// What the recorder is made of.
	{path: "histogram"},
	{path: "history"},
	{path: "suspicious", imports: "history"}, // never perf: it sees the recorder through an interface of its own
	{path: "perf/tsc", modules: xsys},
	{path: "perf", imports: "histogram history suspicious perf/tsc", modules: xsys},

	// Readers' conveniences that an embedder of perf doesn't link.
	{path: "histogram/hdr", imports: "histogram", modules: hdrhistogram}, // the only importer
	{path: "suspicious/ovslog", imports: "history suspicious"},
	{path: "suspicious/cause", imports: "history suspicious internal/human", modules: xsys + " " + ebpf},
	{path: "suspicious/gotrace", imports: "suspicious"},
	{path: "suspicious/explain", imports: "history suspicious suspicious/cause", modules: xsys}, // for embedders with a supervisor
	{path: "suspicious/cause/confusion", imports: "history suspicious/cause", modules: xsys},
	{path: "suspicious/investigate", imports: "histogram history suspicious suspicious/ovslog"},

	// Ways out.
	{path: "export/ovs", imports: "histogram history suspicious perf/tsc perf"},
	{path: "export/appctl", modules: xsys}, // the protocol: knows nothing of perf
	{path: "export/appctl/pmd", imports: "histogram histogram/hdr history suspicious perf/tsc perf export/ovs export/appctl"},
	{path: "export/prom", imports: "histogram history suspicious perf", modules: prometheus + " " + promModel}, // the only importer
	{path: "export/report", imports: "suspicious suspicious/investigate internal/human"},

	// What nobody else may import.
	{path: "internal/dataplane", imports: "histogram history suspicious perf/tsc perf", modules: xsys + " " + ebpf},
	{path: "internal/experiment", imports: "histogram history suspicious suspicious/cause perf/tsc perf internal/dataplane", modules: xperf + " " + xsys},
	{path: "internal/evidence", imports: "suspicious suspicious/ovslog suspicious/investigate export/ovs"},
	{path: "internal/human"},
	{path: "internal/live", imports: "histogram histogram/hdr export/ovs export/appctl internal/human"}, // sees a target, ours or not, through its socket only
	{path: "internal/observe", imports: "history perf/tsc suspicious suspicious/cause suspicious/ovslog internal/human", modules: xsys},
	{path: "internal/top", imports: "internal/human internal/live", modules: terminal},
	{path: "internal/mangle"},
	{path: "internal/need"},
	{path: "internal/netlab", imports: "internal/need", modules: xsys + " " + netlink},
	{path: "internal/daemon"},
	{path: "internal/ovslab", imports: "internal/daemon internal/need"},
	{path: "internal/exporter", imports: "histogram history suspicious perf perf/tsc export/ovs export/appctl export/prom", modules: xsys}, // asks targets; export/prom makes metrics of it
	{path: "internal/promlab", imports: "internal/daemon internal/need"},
	{path: "internal/budgets", modules: xperf},
	{path: "internal/results", imports: "internal/experiment"},
	{path: "internal/layers"},

	// The binary joins everything; no row names it, so nothing imports it.
	{path: "cmd/...", imports: anything, modules: anything},
}

// embedderLinks are the only modules of others that a program gets with perf.
const embedderLinks = xsys

// embedderLinksNot are packages of the standard library that are too heavy, or
// too much of an attack surface, for a packet loop to be given unasked.
const embedderLinksNot = "net/http html/template"

func TestArrows(t *testing.T) {
	for _, broken := range check(layers, list(t)) {
		t.Error(broken)
	}
}

func TestEmbedder(t *testing.T) {
	packages := list(t)
	if _, ok := packages[module+"/perf"]; !ok {
		t.Fatal("there is no package perf")
	}
	for _, broken := range checkEmbedder(packages) {
		t.Error(broken)
	}
}

// TestChecksCatch breaks every rule once in a module that doesn't exist.
func TestChecksCatch(t *testing.T) {
	std := func(names ...string) []pkg {
		var ps []pkg
		for _, n := range names {
			ps = append(ps, pkg{ImportPath: n, Standard: true})
		}
		return ps
	}
	foreign := func(mod string, imports ...string) pkg {
		return pkg{ImportPath: mod, Imports: imports, Module: &owner{mod}}
	}
	ours := func(path string, imports ...string) pkg {
		return pkg{ImportPath: module + "/" + path, Imports: imports, Module: &owner{module}}
	}
	packages := byPath(append(std("fmt", "net/http"),
		foreign(xsys, "fmt"), foreign(hdrhistogram, "fmt"), foreign("example.org/new", "net/http"), foreign(prometheus),
		ours("history", "fmt"),
		ours("suspicious", "fmt", module+"/history", module+"/perf"),
		ours("perf", xsys, module+"/history", "example.org/new"),
		ours("perf/tsc", module+"/cmd/pmdperf"),
		ours("export/ovs", hdrhistogram),
		ours("export/prom", prometheus),
		ours("cmd/pmdperf", module+"/suspicious", prometheus, "fmt"),
		ours("surprise", "fmt"),
	))
	want := []string{
		"export/ovs may not import module " + hdrhistogram,
		"perf may not import module example.org/new",
		"perf/tsc may not import cmd/pmdperf",
		"package surprise is in no row of the table 'layers': add one that says what it may import",
		"suspicious may not import perf",
	}
	if diff := cmp.Diff(want, check(layers, packages)); diff != "" {
		t.Errorf("check (-want +got):\n%s", diff)
	}
	want = []string{
		"a program that imports perf links package net/http",
		"a program that imports perf links module example.org/new",
	}
	if diff := cmp.Diff(want, checkEmbedder(packages)); diff != "" {
		t.Errorf("checkEmbedder (-want +got):\n%s", diff)
	}
}

// pkg is what go list says of a package.
type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Module     *owner
}

type owner struct{ Path string }

func (p pkg) ours() bool { return p.Module != nil && p.Module.Path == module }

func byPath(ps []pkg) map[string]pkg {
	m := make(map[string]pkg)
	for _, p := range ps {
		m[p.ImportPath] = p
	}
	return m
}

// list returns the module's packages and all that they link, by import path.
func list(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Imports,Module", "./...")
	cmd.Dir = "../.."
	// One system for everybody; cgo would add packages of its own.
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var ps []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return byPath(ps)
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		ps = append(ps, p)
	}
}

// check returns a sentence for every arrow that the table doesn't allow, sorted
// by the package at its foot.
func check(table []layer, packages map[string]pkg) []string {
	var broken []string
	for _, path := range sorted(packages) {
		p := packages[path]
		if !p.ours() {
			continue
		}
		name := strings.TrimPrefix(path, module+"/")
		row, ok := find(table, name)
		if !ok {
			broken = append(broken, fmt.Sprintf("package %s is in no row of the table 'layers': add one that says what it may import", name))
			continue
		}
		for _, path := range p.Imports {
			switch to := packages[path]; {
			case to.ours():
				if to := strings.TrimPrefix(path, module+"/"); !allows(row.imports, to) {
					broken = append(broken, fmt.Sprintf("%s may not import %s", name, to))
				}
			case to.Module != nil:
				if !allows(row.modules, to.Module.Path) {
					broken = append(broken, fmt.Sprintf("%s may not import module %s", name, to.Module.Path))
				}
			}
		}
	}
	return broken
}

// checkEmbedder returns a sentence for everything that perf links, directly or
// not, and should not.
func checkEmbedder(packages map[string]pkg) []string {
	var broken []string
	seen := make(map[string]bool)
	var visit func(path string)
	visit = func(path string) {
		if seen[path] {
			return
		}
		seen[path] = true
		p := packages[path]
		for _, path := range p.Imports {
			visit(path)
		}
		switch {
		case p.Standard && slices.Contains(strings.Fields(embedderLinksNot), path):
			broken = append(broken, "a program that imports perf links package "+path)
		case p.Module != nil && !p.ours() && !allows(embedderLinks, p.Module.Path):
			broken = append(broken, "a program that imports perf links module "+p.Module.Path)
		}
	}
	visit(module + "/perf")
	return broken
}

// find returns the row of a package.
func find(table []layer, name string) (layer, bool) {
	i := slices.IndexFunc(table, func(l layer) bool {
		tree, ok := strings.CutSuffix(l.path, "...")
		return l.path == name || ok && strings.HasPrefix(name+"/", tree)
	})
	if i < 0 {
		return layer{}, false
	}
	return table[i], true
}

func allows(list, name string) bool {
	return list == anything || slices.Contains(strings.Fields(list), name)
}

func sorted(packages map[string]pkg) []string {
	var paths []string
	for path := range packages {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}
