package appctl

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// requests is what a client may send in one go, and how many requests of it are
// answered before the connection ends. The table is also the fuzz target's
// corpus and is compared with what Open vSwitch makes of it.
var requests = []struct {
	name, text string
	answered   int
}{
	{"plain", `{"id":0,"method":"version","params":[]}`, 1},
	{"white space", " \t\r\n{ \"id\" :\n0, \"method\":\t\"version\" ,\"params\":[ ] }\n\n", 1},
	{"other order", `{"params":[],"method":"version","id":0}`, 1},
	{"escaped names", `{"\u0069d":0,"m\u0065thod":"v\u0065rsion","params":[]}`, 1},
	{"two", `{"id":0,"method":"version","params":[]}{"id":1,"method":"version","params":[]}`, 2},
	{"null result and error", `{"id":0,"method":"version","params":[],"result":null,"error":null}`, 1},
	{"last of the same name counts", `{"id":0,"id":1,"method":"version","params":[]}`, 1},
	{"unknown command", `{"id":0,"method":"nope","params":[1,2]}`, 1},
	{"surrogate pair", `{"id":0,"method":"\ud83d\ude00","params":[]}`, 1},
	{"not UTF-8", "{\"id\":\"\xff\",\"method\":\"\xfe\",\"params\":[\"\xc3\"]}", 1},

	{"nothing", ``, 0},
	{"garbage", `garbage`, 0},
	{"garbage after a request", `{"id":0,"method":"version","params":[]}garbage`, 1},
	{"comma between requests", `{"id":0,"method":"version","params":[]},{"id":0,"method":"version","params":[]}`, 1},
	{"number", `12 `, 0},
	{"string", `"version"`, 0},
	{"null", `null`, 0},
	{"byte order mark", "\ufeff" + `{"id":0,"method":"version","params":[]}`, 0},
	{"id null", `{"id":null,"method":"version","params":[]}`, 0},
	{"no id", `{"method":"version","params":[]}`, 0},
	{"params null", `{"id":0,"method":"version","params":null}`, 0},
	{"no params", `{"id":0,"method":"version"}`, 0},
	{"params object", `{"id":0,"method":"version","params":{}}`, 0},
	{"params string", `{"id":0,"method":"version","params":"x"}`, 0},
	{"no method", `{"id":0,"params":[]}`, 0},
	{"method null", `{"id":0,"method":null,"params":[]}`, 0},
	{"method number", `{"id":0,"method":1,"params":[]}`, 0},
	{"jsonrpc", `{"jsonrpc":"2.0","id":0,"method":"version","params":[]}`, 0},
	{"other member", `{"id":0,"method":"version","params":[],"x":null}`, 0},
	{"other case", `{"ID":0,"Method":"version","params":[]}`, 0},
	{"batch", `[{"id":0,"method":"version","params":[]}]`, 0},
	{"result reply", `{"id":0,"result":"x","error":null}`, 0},
	{"error reply", `{"id":0,"result":null,"error":"x"}`, 0},
	{"request with a result", `{"id":0,"method":"version","params":[],"result":"x"}`, 0},
	{"NUL in an argument", `{"id":0,"method":"version","params":["\u0000"]}`, 0},
	{"NUL in the id", `{"id":"\u0000","method":"version","params":[]}`, 0},
	{"raw NUL", "{\"id\":0,\"method\":\"version\",\"params\":[\"\x00\"]}", 0},
	{"raw newline", "{\"id\":0,\"method\":\"version\",\"params\":[\"\n\"]}", 0},
	{"high surrogate", `{"id":0,"method":"version","params":["\ud83d"]}`, 0},
	{"low surrogate", `{"id":0,"method":"version","params":["\ude00"]}`, 0},
	{"wrong number", `{"id":01,"method":"version","params":[]}`, 0},
	{"unfinished", `{"id":0,"method":"version","params":[`, 0},
	{"unfinished after a request", `{"id":0,"method":"version","params":[]}{"id":`, 1},
}

// read returns the requests in a stream before the first thing that isn't one.
func read(r io.Reader, max int64) ([]request, error) {
	texts := newTextReader(r, max)
	var all []request
	for {
		text, err := texts.next()
		if err != nil {
			return all, err
		}
		req, err := parseRequest(text)
		if err != nil {
			return all, err
		}
		all = append(all, req)
	}
}

func TestRequests(t *testing.T) {
	for _, test := range requests {
		t.Run(test.name, func(t *testing.T) {
			got, err := read(strings.NewReader(test.text), DefaultMaxRequest)
			if len(got) != test.answered {
				t.Fatalf("got %d requests, want %d (%v)", len(got), test.answered, err)
			}
			slow, _ := read(iotest.OneByteReader(strings.NewReader(test.text)), DefaultMaxRequest)
			if diff := cmp.Diff(got, slow, cmp.AllowUnexported(request{})); diff != "" {
				t.Errorf("byte by byte it differs:\n%s", diff)
			}
		})
	}
}

func TestRequestSize(t *testing.T) {
	const max = 1000
	const frame = `{"id":0,"method":"m","params":[""]}`
	sized := func(n int) string {
		return strings.Replace(frame, `""`, `"`+strings.Repeat("x", n-len(frame))+`"`, 1)
	}
	for _, test := range []struct {
		text    string
		want    int
		tooLong bool
	}{
		{sized(max), 1, false},
		{sized(max + 1), 0, true},
		{strings.Repeat(sized(max), 5), 5, false},
		{strings.Repeat(sized(300), 7) + sized(max+1), 7, true},
		{strings.Repeat(" ", max+1), 0, true},
		{strings.Repeat(`{"":`, max), 0, true},
		{strings.Repeat("[", max+1), 0, false},
	} {
		got, err := read(strings.NewReader(test.text), max)
		if len(got) != test.want || errors.Is(err, errTooLong) != test.tooLong {
			t.Errorf("%d bytes: got %d requests, %v; want %d, too long %v", len(test.text), len(got), err, test.want, test.tooLong)
		}
	}
}

// endless is a stream that never completes a request.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = `{"":`[e.read%4]
		e.read++
	}
	return len(p), nil
}

func TestRequestMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var e endless
	if _, err := newTextReader(&e, 64<<10).next(); err == nil {
		t.Fatal("an endless request came to an end")
	}
	runtime.ReadMemStats(&after)
	if e.read > 64<<10 {
		t.Errorf("read %d bytes of an endless request", e.read)
	}
	if total := after.TotalAlloc - before.TotalAlloc; total > 2<<20 {
		t.Errorf("allocated %d bytes for an endless request", total)
	}
}

func FuzzRequest(f *testing.F) {
	for _, r := range requests {
		f.Add([]byte(r.text))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		const max = 512
		got, err := read(strings.NewReader(string(stream)), max)
		if err == nil {
			t.Fatal("the stream has no end")
		}
		slow, _ := read(iotest.OneByteReader(strings.NewReader(string(stream))), max)
		if diff := cmp.Diff(got, slow, cmp.AllowUnexported(request{})); diff != "" {
			t.Fatalf("byte by byte it differs:\n%s", diff)
		}
		for _, r := range got {
			// What was understood can be answered, and the answer be understood.
			set := commandSet{r.method: Command{MaxArgs: NoMax}}
			var reply []byte
			if _, args, err := set.find(r); err != nil {
				reply = appendError(nil, r.id, err.Error())
			} else {
				reply = appendResult(nil, r.id, appendQuoted(nil, fmt.Sprint(args)))
				again, err := read(strings.NewReader(string(appendRequest(nil, r.id, r.method, args))), 100*max)
				if len(again) != 1 || again[0].method != strings.ReplaceAll(r.method, "\x00", "") {
					t.Fatalf("sent again, %q is %v, %v", stream, again, err)
				}
			}
			text, err := newTextReader(strings.NewReader(string(reply)), 100*max).next()
			if err != nil {
				t.Fatalf("reply %q: %v", reply, err)
			}
			m, err := parseMessage(text)
			if err != nil || string(m["id"]) != string(r.id) {
				t.Fatalf("reply %q: %v, id %s", reply, err, m["id"])
			}
		}
	})
}
