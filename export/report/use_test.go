package report

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/pmdperf/pmdperf/internal/human"
)

func (x *tab) focus(id string) { x.t.Helper(); x.do(chromedp.Focus(chromedp.ID(id))) }

// keys presses keys, given by their names in JavaScript.
func (x *tab) keys(names ...string) {
	x.t.Helper()
	codes := map[string]string{
		"ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight, "ArrowUp": kb.ArrowUp, "ArrowDown": kb.ArrowDown, "Home": kb.Home, "End": kb.End,
		"PageUp": kb.PageUp, "PageDown": kb.PageDown, "Enter": kb.Enter, "Escape": kb.Escape, "Tab": kb.Tab,
	}
	for _, name := range names {
		code, ok := codes[name]
		if !ok {
			code = name
		}
		x.press(code)
	}
}

// point is a place on the screen.
type point struct{ X, Y float64 }

// stallAt returns where the bar of a stall is, by what the page's data say and how the
// chart is laid out: the whole time over its whole width, the lane of the first thread
// below 26 + 24 pixels, bars at the bottom of 96.
func (x *tab) stallAt(stall int) point {
	x.t.Helper()
	return eval[point](x, fmt.Sprintf(`(() => {
		const d = JSON.parse(document.getElementById("data").textContent), c = document.getElementById("chart");
		c.scrollIntoView();
		const r = c.getBoundingClientRect();
		return {X: r.left + (d.stalls.end[%[1]d] - d.from) / (d.to - d.from) * r.width, Y: r.top + 26 + 24 + 96 * (d.stalls.thread[%[1]d] + 1) - 4};
	})()`, stall))
}

// span returns the time on the screen, as the page writes it.
func (x *tab) span() string { x.t.Helper(); return x.text("#range") }

// testUse uses the page by mouse, by keyboard and by finger.
func testUse(t *testing.T, browser context.Context) {
	p := sample(60)
	at := order(p.Stalls)
	// says wants the neighborhood of a stall, given by its place in the order of time.
	says := func(t *testing.T, x *tab, i int) {
		t.Helper()
		x.settled()
		s := &p.Stalls[at[i]]
		if got, want := strings.ReplaceAll(x.text("#detail-h"), "\u00a0", " "), strings.ReplaceAll(duration(s.Micros), "\u00a0", " ")+" on "+p.Threads[s.Thread].Name; got != want {
			t.Errorf("the page shows %q, want %q", got, want)
		}
		if got, want := x.text("#neighborhood .culprit td"), human.Count(s.Iteration); got != want {
			t.Errorf("the culprit is iteration %s, want %s", got, want)
		}
		if n := eval[int](x, `document.querySelectorAll("#neighborhood tbody tr").length`); n != len(s.Rows) {
			t.Errorf("the neighborhood has %d rows, want %d", n, len(s.Rows))
		}
		if got, want := eval[string](x, `location.hash`), fmt.Sprintf("#stall-%d", i); got != want {
			t.Errorf("the address ends with %q, want %q", got, want)
		}
		if got, want := x.text("#say"), fmt.Sprintf("Stall %d of %d: ", i+1, len(p.Stalls)); !strings.HasPrefix(got, want) {
			t.Errorf("a screen reader says %q, want %q", got, want)
		}
	}

	t.Run("mouse", func(t *testing.T) {
		x := open(t, browser, p, setup{})
		defer x.quiet()
		if x.visible("#detail") {
			t.Error("there is a neighborhood before any was asked for")
		}
		for _, i := range []int{7, 40} {
			pt := x.stallAt(i)
			x.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, pt.X, pt.Y))
			if tip := x.text("#tip"); !strings.Contains(tip, human.Count(p.Stalls[at[i]].Iteration)) {
				t.Errorf("the tip says %q, want iteration %d", tip, p.Stalls[at[i]].Iteration)
			}
			x.do(chromedp.MouseClickXY(pt.X, pt.Y))
			says(t, x, i)
		}
		all := x.span()
		pt := x.stallAt(20)
		eval[bool](x, fmt.Sprintf(`!document.getElementById("chart").dispatchEvent(new WheelEvent("wheel", {clientX: %f, clientY: %f, deltaY: -300, cancelable: true}))`, pt.X, pt.Y))
		x.settled()
		zoomed := x.span()
		if zoomed == all {
			t.Error("the wheel doesn't zoom")
		}
		x.do(chromedp.DragAndDropXY(pt.X, pt.Y, pt.X-200, pt.Y))
		x.settled()
		if moved := x.span(); moved == zoomed || moved == all {
			t.Errorf("dragging went from %s to %s", zoomed, moved)
		}
		x.do(chromedp.Click(chromedp.ID("zoom-all")))
		x.settled()
		if x.span() != all {
			t.Errorf("all is %s, was %s", x.span(), all)
		}
		x.do(chromedp.Click(chromedp.CSS("#list tbody tr:first-child")))
		says(t, x, rank(p, at, 0))
		x.do(chromedp.Click(chromedp.CSS("#finding-2 .places a")))
		x.settled()
		if !strings.Contains(x.text("#detail-h"), "pmd-c02/id:9") {
			t.Errorf("the longest stall of finding 2 is %s", x.text("#detail-h"))
		}
	})

	t.Run("keyboard", func(t *testing.T) {
		x := open(t, browser, p, setup{})
		defer x.quiet()
		for range 60 { // from the top, as somebody without a mouse does
			x.keys("Tab")
			if eval[string](x, `document.activeElement.id`) == "chart" {
				break
			}
		}
		if got := eval[string](x, `document.activeElement.id`); got != "chart" {
			t.Fatalf("the Tab key doesn't lead to the chart, but to %q", got)
		}
		x.keys("Home")
		says(t, x, 0)
		x.keys("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft")
		says(t, x, 2)
		x.keys("End")
		says(t, x, len(at)-1)
		before := x.text("#detail-h")
		x.keys("ArrowUp")
		if x.text("#detail-h") == before {
			x.keys("ArrowDown")
		}
		if x.text("#detail-h") == before {
			t.Error("the arrows don't lead to another thread")
		}
		all := x.span()
		x.keys("+", "+", "+", "+")
		zoomed := x.span()
		if zoomed == all {
			t.Error("+ doesn't zoom")
		}
		x.keys("PageUp")
		if x.span() == zoomed {
			t.Error("PgUp doesn't move")
		}
		x.keys("-", "-", "-", "-", "-")
		if x.span() != all {
			t.Errorf("- leads to %s, want %s", x.span(), all)
		}
		x.keys("+", "0")
		if x.span() != all {
			t.Errorf("0 leads to %s, want %s", x.span(), all)
		}
		x.keys("Enter")
		if got := eval[string](x, `document.activeElement.id`); got != "detail" {
			t.Errorf("Enter leads to %q, want the neighborhood", got)
		}
		x.keys("Escape", "Escape")
		if x.visible("#detail") {
			t.Error("Esc doesn't close the neighborhood")
		}
	})

	t.Run("finger", func(t *testing.T) {
		x := open(t, browser, p, setup{width: 400, height: 800})
		defer x.quiet()
		x.do(chromedp.EmulateViewport(400, 800, chromedp.EmulateMobile, chromedp.EmulateTouch))
		pt := x.stallAt(7)
		touch := func(kind input.DispatchTouchEventType, points ...*input.TouchPoint) {
			t.Helper()
			call(x, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: points})
		}
		x.do(chromedp.TapXY(pt.X, pt.Y))
		x.settled()
		if !x.visible("#detail") {
			t.Error("a tap shows no neighborhood")
		}
		all := x.span()
		a, b := &input.TouchPoint{X: 150, Y: pt.Y, ID: new(0.0)}, &input.TouchPoint{X: 200, Y: pt.Y, ID: new(1.0)}
		touch(input.DispatchTouchEventTypeTouchStart, a, b)
		for range 5 {
			a.X, b.X = a.X-10, b.X+10
			touch(input.DispatchTouchEventTypeTouchMove, a, b)
		}
		touch(input.DispatchTouchEventTypeTouchEnd)
		x.settled()
		if x.span() == all {
			t.Error("spreading two fingers doesn't zoom")
		}
	})

	t.Run("findings", func(t *testing.T) {
		x := open(t, browser, p, setup{})
		defer x.quiet()
		x.do(chromedp.Click(chromedp.CSS("#finding-1 .show")))
		x.settled()
		want := fmt.Sprintf("1 to %d of %d", min(25, len(p.Findings[0].Stalls)), len(p.Findings[0].Stalls))
		if got := x.text("#pager span"); got != want {
			t.Errorf("the list has %q, want %q", got, want)
		}
		if !eval[bool](x, `document.querySelector("#finding-1 details").open && document.querySelector("#finding-1").classList.contains("chosen")`) {
			t.Error("the finding and its evidence don't stand out")
		}
		if got := eval[string](x, `[...document.querySelectorAll("[aria-pressed=true]")].map(b => b.dataset.finding).join()`); got != "1,1" {
			t.Errorf("pressed are %q, want the button of finding 1 and that in the legend", got)
		}
		x.shot("finding")
		x.keys("Home", "ArrowRight", "ArrowRight")
		var times []int
		for i, j := range at {
			if findingOf(p)[j] == 0 {
				times = append(times, i)
			}
		}
		says(t, x, times[2])
		x.keys("Escape", "Escape")
		if got := x.text("#pager span"); got != "1 to 25 of 60" {
			t.Errorf("after Esc the list has %q", got)
		}
		x.do(chromedp.Click(chromedp.CSS("#finding-1 .copy")))
		if got := run(x, chromedp.Poll[string](`(t => t !== "Copy" && t)(document.querySelector("#finding-1 .copy").textContent)`)); got != "Copied" && got != "Selected" {
			t.Errorf("the button says %q", got)
		}
	})
}

// rank returns the place in the order of time of the n-th longest stall.
func rank(p *Page, at []int, n int) int {
	i := longest(p.Stalls, at, n+1)[n]
	for place, j := range at {
		if i == j {
			return place
		}
	}
	return -1
}
