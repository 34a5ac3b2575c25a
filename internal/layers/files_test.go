package layers

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/internal/need"
)

// TestFiles looks into every text file of the checkout for what only makes sense
// on the machine where it was written.
func TestFiles(t *testing.T) {
	for _, name := range files(t) {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed, but not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, broken := range checkText(text) {
			t.Errorf("%s:%s", name, broken)
		}
	}
}

func TestCheckTextCatches(t *testing.T) {
	dir, host := "/"+"work/", strings.Join([]string{"proxy", "golang", "org"}, ".")
	text := "fine: a/" + dir + " and artwork/ and ~" + dir + "\n" +
		"cd " + dir + "main\n" +
		"see (/" + "root/notes)\n" +
		"\n" +
		"GOPROXY=https://" + host + "\n"
	want := []string{
		"2: a path of one machine: " + dir,
		"3: a path of one machine: /" + "root/",
		"5: a package registry: " + host,
	}
	if diff := cmp.Diff(want, checkText([]byte(text))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := checkText([]byte("\x7fELF\x00 cd " + dir)); got != nil {
		t.Errorf("a binary file: got %q", got)
	}
}

// TestFuzzCorpora wants a committed corpus for every fuzz target, so that a plain
// go test already runs it on inputs that mean something.
func TestFuzzCorpora(t *testing.T) {
	names := files(t)
	target := regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
	var targets int
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join("../..", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range target.FindAllSubmatch(text, -1) {
			targets++
			corpus := path.Join(path.Dir(name), "testdata/fuzz", string(m[1])) + "/"
			if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, corpus) }) {
				t.Errorf("%s: %s has no corpus in %s", name, m[1], corpus)
			}
		}
	}
	if targets == 0 {
		t.Error("found no fuzz target at all")
	}
}

// files returns the names of the files that git tracks or would track, from the
// top of the checkout.
func files(t *testing.T) []string {
	t.Helper()
	// A clone that belongs to somebody else, as in a container, is fine here.
	cmd := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		need.Skip(t, fmt.Sprintf("needs git and a checkout: %v", err))
	}
	names := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	if len(names) == 0 {
		t.Fatal("git names no files")
	}
	return names
}

// machinePath matches the directories in which a checkout or a home may lie. The
// parts are apart because this file is checked too.
var machinePath = regexp.MustCompile(`(?:^|[^\w./~-])((?:/tmp)?/(?:work|root)/)`)

// registries returns the hosts that serve packages; the go command and apt-get
// know theirs.
func registries() []string {
	hosts := []string{
		"proxy golang org", "sum golang org", "pypi org", "files pythonhosted org", "registry npmjs org",
		"crates io", "rubygems org", "deb debian org", "archive ubuntu com",
	}
	for i, host := range hosts {
		hosts[i] = strings.ReplaceAll(host, " ", ".")
	}
	return hosts
}

// checkText returns "line: what is wrong" for every line that has a mark of one
// machine or network. Binary files pass.
func checkText(text []byte) []string {
	if bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) {
		return nil
	}
	var broken []string
	hosts := registries()
	line := 0
	for s := range strings.Lines(string(text)) {
		line++
		if m := machinePath.FindStringSubmatch(s); m != nil {
			broken = append(broken, fmt.Sprintf("%d: a path of one machine: %s", line, m[1]))
		}
		for _, host := range hosts {
			if strings.Contains(s, host) {
				broken = append(broken, fmt.Sprintf("%d: a package registry: %s", line, host))
			}
		}
	}
	return broken
}
