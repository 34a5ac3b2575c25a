package report

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/pmdperf/pmdperf/internal/need"
)

var shots = flag.String("shots", "", "a directory for pictures of the page, to look at")

// patience bounds what only a defect makes long.
const patience = 3 * time.Minute

// TestBrowser looks at pages in one real Chromium.
func TestBrowser(t *testing.T) {
	browser := chromium(t)
	t.Run("looks", func(t *testing.T) { testLooks(t, browser) })
	t.Run("use", func(t *testing.T) { testUse(t, browser) })
	t.Run("logs", func(t *testing.T) { testLogs(t, browser) })
	t.Run("hostile", func(t *testing.T) { testHostile(t, browser) })
	t.Run("ten-thousand", func(t *testing.T) { testTenThousand(t, browser) })
}

// chromium starts a browser for the time of a test.
func chromium(t *testing.T) context.Context {
	t.Helper()
	path := need.Tool(t, "chromium")
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.DisableGPU)
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return ctx
}

// tab is a tab of a browser, with a page in it.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	requests []string // all that it asked for
	said     []string // on its console, and what went wrong
}

// a setup is how a page is looked at. The zero value is a wide, light screen.
type setup struct {
	width, height int64
	dark          bool
	noScript      bool
}

// open opens a page in a tab of its own.
func open(t *testing.T, browser context.Context, p *Page, s setup) *tab {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(browser, patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	x := &tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, x.listen); err != nil {
		t.Fatal(err)
	}
	call(x, network.Enable, network.EnableParams{})
	call(x, log.Enable, cdp.Empty{})
	scheme := "light"
	if s.dark {
		scheme = "dark"
	}
	call(x, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}, // nothing moves while a test looks
	}})
	call(x, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: s.noScript})
	if s.width == 0 {
		s.width, s.height = 1280, 900
	}
	x.do(chromedp.EmulateViewport(s.width, s.height), chromedp.Navigate("file://"+file))
	return x
}

func (x *tab) listen(event any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		x.requests = append(x.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if o := e.ExceptionDetails.Exception; o != nil {
			text += ": " + o.Description
		}
		x.said = append(x.said, text)
	case *runtime.EventConsoleAPICalled:
		x.said = append(x.said, "console: "+string(e.Type))
	case *log.EventEntryAdded:
		x.said = append(x.said, e.Entry.Text)
	case *page.EventJavascriptDialogOpening:
		x.said = append(x.said, "dialog: "+e.Message)
	}
}

func (x *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	x.t.Helper()
	if err := chromedp.Do(x.ctx, actions...); err != nil {
		x.t.Fatal(err)
	}
}

func run[T any](x *tab, action chromedp.Action[T]) T {
	x.t.Helper()
	v, err := chromedp.Run(x.ctx, action)
	if err != nil {
		x.t.Fatal(err)
	}
	return v
}

func call[P, R any](x *tab, command cdp.Command[P, R], params P) R {
	x.t.Helper()
	r, err := chromedp.Call(x.ctx, command, params)
	if err != nil {
		x.t.Fatal(err)
	}
	return r
}

// eval returns what an expression of JavaScript is, or what its promise keeps.
func eval[T any](x *tab, expression string) T {
	x.t.Helper()
	return run(x, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// quiet wants nothing to have gone wrong, and nothing to have been asked for but the page.
func (x *tab) quiet() {
	x.t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.said {
		x.t.Errorf("the browser says: %s", s)
	}
	loaded := false
	for _, r := range x.requests {
		if strings.HasSuffix(r, "/report.html") {
			loaded = true
		} else if r != "data:," {
			x.t.Errorf("the page asked for %.100s", r)
		}
	}
	if !loaded {
		x.t.Errorf("the request for the page is not among those seen: %q", x.requests)
	}
}

// settled waits until what is to be drawn is drawn.
func (x *tab) settled() {
	x.t.Helper()
	eval[bool](x, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
}

func (x *tab) press(keys ...string) {
	x.t.Helper()
	for _, k := range keys {
		x.do(chromedp.KeyEvent(k))
	}
	x.settled()
}

// text returns the text of the first element that a selector finds.
func (x *tab) text(selector string) string {
	x.t.Helper()
	s, _ := json.Marshal(selector)
	return eval[string](x, `(document.querySelector(`+string(s)+`) || {textContent: "nothing"}).textContent`)
}

// shot keeps a picture, if that is wanted.
func (x *tab) shot(name string) {
	x.t.Helper()
	if *shots != "" {
		x.keep(name+".png", run(x, chromedp.FullScreenshot(100)))
	}
}

func (x *tab) keep(name string, content []byte) {
	x.t.Helper()
	if *shots == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(*shots, name), content, 0o644); err != nil {
		x.t.Fatal(err)
	}
}
