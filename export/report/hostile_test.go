package report

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chromedp/chromedp"
)

// evil are texts that are something else than text in HTML, JavaScript, CSS or a shell.
var evil = []string{
	`</script><script>window.harmed = 1</script>`,
	`<img src=x onerror="window.harmed = 1">`,
	`"><svg onload=window.harmed=1>`,
	`' onmouseover='window.harmed=1`,
	"</style><style>*{display:none}</style>",
	`<!--<script>`,
	`{{.}} ${window.harmed=1} \u003cscript\u003e`,
	`javascript:window.harmed=1`,
	`http://203.0.113.1/x.png`,
	"naïve – 日本語 \U0001F525",
	"bytes \xff\xfe\xc0\x80 that are no UTF-8",
	"controls \x00\x07\x1b[31m\u202e\u2066 and\r\nlines\u2028",
	`*/ </title> ]]> &lt;b&gt; &amp;`,
}

// infect returns the page with every text in it replaced.
func infect(p *Page, text func() string) *Page {
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			v.SetString(text())
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Struct:
			if v.Type() != reflect.TypeFor[time.Time]() {
				for i := range v.NumField() {
					walk(v.Field(i))
				}
			}
		}
	}
	walk(reflect.ValueOf(p).Elem())
	return p
}

// testHostile: no text becomes anything else than text.
func testHostile(t *testing.T, browser context.Context) {
	i := 0
	x := open(t, browser, infect(sample(60), func() string { i++; return evil[i%len(evil)] }), setup{})
	defer x.quiet()
	x.settled()
	x.shot("hostile")
	x.focus("chart")
	x.keys("Home", "ArrowRight", "ArrowDown", "End")
	x.do(chromedp.Click(chromedp.CSS("#finding-1 .show")))
	pt := x.stallAt(7)
	x.do(chromedp.MouseClickXY(pt.X, pt.Y))
	x.settled()
	if eval[bool](x, `"harmed" in window`) {
		t.Error("a text was executed")
	}
	if got := eval[string](x, `[...document.querySelectorAll("script, img, iframe, object, embed, form, base, link, style")].map(e => e.localName).sort().join()`); got != "link,script,script,style" {
		t.Errorf("the page has elements %s", got)
	}
	if got := eval[string](x, `[...document.querySelectorAll("*")].flatMap(e => [...e.attributes]).filter(a => /^on|^style$/.test(a.name) || /^(href|src)$/.test(a.name) && !/^#|^data:,$/.test(a.value)).map(a => a.name + "=" + a.value).filter(a => !/^style=(height|left|top|cursor):/.test(a)).join()`); got != "" {
		t.Errorf("the page has attributes %s", got)
	}
	for _, s := range evil {
		s, _ := json.Marshal(strings.Join(strings.Fields(clean(s)), " "))
		if !eval[bool](x, `document.body.textContent.replace(/\s+/g, " ").includes(`+string(s)+`)`) {
			t.Errorf("the page doesn't show %s", s)
		}
	}
}

// FuzzPage: whatever the texts and numbers are, the page has the elements that it has
// with harmless ones, and its data is what it was.
func FuzzPage(f *testing.F) {
	for _, s := range evil {
		f.Add(s, "x", 12.5, uint64(1)<<60, int64(0))
	}
	f.Add("x", "", math.NaN(), uint64(math.MaxUint64), int64(math.MaxInt64))
	f.Add("x", "y", math.Inf(1), uint64(0), int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, a, b string, v float64, n uint64, at int64) {
		build := func(a, b string) *Page {
			i := 0
			p := infect(sample(3), func() string { i++; return []string{a, b}[i%2] })
			s := &p.Stalls[1]
			s.Micros, s.Iteration, s.End = v, n, time.Unix(at/1e9, at%1e9)
			s.Rows[0].Cycles, s.Rows[1].SleepMicros = n, v
			p.Series[0].Points[0].Value = v
			p.Threads[0].Hz, p.Threads[0].Shares[0].Percent = v, v
			p.Threads[0].Histograms[0].Percentiles[0].Value = v
			return p
		}
		write := func(p *Page) string {
			var w bytes.Buffer
			if err := p.Write(&w); err != nil {
				t.Fatal(err)
			}
			return w.String()
		}
		page := write(build(a, b))
		if !utf8.ValidString(page) {
			t.Error("the page is no UTF-8")
		}
		harmless := func(s string) string {
			if s == "" {
				return s
			}
			return "x"
		}
		if got, want := strings.Count(page, "<"), strings.Count(write(build(harmless(a), harmless(b))), "<"); got != want {
			t.Errorf("%d tags, with harmless texts %d", got, want)
		}
		var d data
		if err := json.Unmarshal([]byte(dataOf(t, page)), &d); err != nil {
			t.Fatal(err)
		}
		if len(d.Stalls.Micros) != 3 || len(d.Stalls.End) != 3 || len(d.Stalls.Detail) != 3 || len(d.Threads) != 2 {
			t.Fatalf("the data has %d stalls of %d threads", len(d.Stalls.Micros), len(d.Threads))
		}
		if i := indexOf(d.Stalls.Iteration, num(n)); i < 0 || d.Stalls.Detail[i].Rows[0][1] != num(n) {
			t.Errorf("iteration %d became %v", n, d.Stalls.Iteration)
		}
		if d.Threads[0].Name != clean(a) && d.Threads[0].Name != clean(b) {
			t.Errorf("the thread's name became %q", d.Threads[0].Name)
		}
		if !(d.To > d.From) {
			t.Errorf("the time is from %v to %v", d.From, d.To)
		}
	})
}

func indexOf(list []num, n num) int {
	for i, m := range list {
		if m == n {
			return i
		}
	}
	return -1
}

// dataOf returns the JSON in a page.
func dataOf(t *testing.T, page string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, `<script type="application/json" id="data">`)
	json, _, end := strings.Cut(rest, "</script>")
	if !ok || !end {
		t.Fatal("the page has no data")
	}
	return json
}
