package report

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// testLooks opens the page as people have it: on a wide and a narrow screen, in light
// and dark, on paper and without scripts. With -shots it keeps pictures.
func testLooks(t *testing.T, browser context.Context) {
	p := sample(500)
	const light, dark = "rgb(245, 246, 248)", "rgb(13, 17, 23)"
	for _, look := range []struct {
		name string
		setup
		background string
	}{
		{"light", setup{}, light},
		{"dark", setup{dark: true}, dark},
		{"narrow", setup{width: 400, height: 800}, light},
	} {
		t.Run(look.name, func(t *testing.T) {
			x := open(t, browser, p, look.setup)
			x.settled()
			x.shot(look.name)
			if got := eval[string](x, `getComputedStyle(document.body).backgroundColor`); got != look.background {
				t.Errorf("the page is %s, want %s", got, look.background)
			}
			if wide := eval[int64](x, `document.documentElement.scrollWidth - window.innerWidth`); wide > 0 {
				t.Errorf("the page is %d pixels wider than the screen", wide)
			}
			if n := x.inked(look.background); n < 1000 {
				t.Errorf("%d pixels of the chart are drawn, want thousands", n)
			}
			x.focus("chart")
			x.keys("Home", "ArrowRight", "+", "+", "+")
			x.shot(look.name + "-chosen")
			for _, problem := range x.inaccessible() {
				t.Errorf("not accessible: %s", problem)
			}
			if wide := eval[int64](x, `document.documentElement.scrollWidth - window.innerWidth`); wide > 0 {
				t.Errorf("with a stall chosen the page is %d pixels wider than the screen", wide)
			}
			x.quiet()
		})
	}
	t.Run("paper", func(t *testing.T) {
		x := open(t, browser, p, setup{dark: true})
		x.settled()
		x.focus("chart")
		x.keys("Home")
		pdf := run(x, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4), chromedp.PDFPreferCSSPageSize()))
		x.keep("paper.pdf", pdf)
		if !bytes.HasPrefix(pdf, []byte("%PDF-")) || len(pdf) < 20_000 {
			t.Errorf("printing gives %d bytes that begin with %.20q", len(pdf), pdf)
		}
		call(x, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print", Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
		x.do(chromedp.EmulateViewport(794, 1123))
		x.shot("paper")
		if got := eval[string](x, `getComputedStyle(document.body).backgroundColor`); got != "rgb(255, 255, 255)" {
			t.Errorf("paper is %s", got)
		}
		for selector, want := range map[string]bool{
			"#chart": false, ".toolbar": false, "button.copy": false, "#list": false, "nav": false, "#detail": false,
			".finding": true, ".evidence code": true, ".command code": true, ".lane svg": true, "tr#stall-7, .stalls tr": true, ".near .culprit": true, ".plots svg": true,
		} {
			if got := x.visible(selector); got != want {
				t.Errorf("on paper, visible %s is %v", selector, got)
			}
		}
		if n := eval[int](x, `document.querySelectorAll(".stalls tbody tr").length`); n < shownStalls || n > shownStalls+shownLinks*len(p.Findings) {
			t.Errorf("%d stalls are on paper, want %d and some", n, shownStalls)
		}
		x.quiet()
	})
	t.Run("noscript", func(t *testing.T) {
		x := open(t, browser, p, setup{noScript: true})
		x.shot("noscript")
		if eval[bool](x, `document.documentElement.classList.contains("js-on")`) {
			t.Fatal("scripts run, so that this test shows nothing")
		}
		for selector, want := range map[string]bool{
			"#chart": false, "button": false, "#list": false,
			".finding": true, ".lane svg": true, ".stalls td": true, ".near .culprit": true, ".plots svg": true,
		} {
			if got := x.visible(selector); got != want {
				t.Errorf("without scripts, visible %s is %v", selector, got)
			}
		}
		for at := range 5 {
			if id := eval[string](x, fmt.Sprintf(`document.querySelectorAll(".places a")[%d].hash`, at)); !x.visible(id) {
				t.Errorf("without scripts there is nothing at %s, to which a finding leads", id)
			}
		}
		x.quiet()
	})
}

// inaccessible returns elements that assistive technology can't name, tell apart or reach.
func (x *tab) inaccessible() []string {
	x.t.Helper()
	return eval[[]string](x, `(() => {
		const wrong = [], all = s => [...document.querySelectorAll(s)], tell = (what, e) => wrong.push(what + ": " + e.outerHTML.slice(0, 100));
		const named = e => e.textContent.trim() || e.getAttribute("aria-label") || (e.getAttribute("aria-labelledby") && document.getElementById(e.getAttribute("aria-labelledby")));
		all("button, a, summary, svg[role=img], section, nav, [role=region], [role=group], [role=toolbar], canvas").forEach(e => named(e) || tell("no name", e));
		all("svg:not([role=img], [aria-hidden])").forEach(e => tell("picture of no role", e));
		all("[aria-labelledby], [aria-describedby], [aria-controls]").forEach(e => ["aria-labelledby", "aria-describedby", "aria-controls"].forEach(a =>
			e.hasAttribute(a) && !document.getElementById(e.getAttribute(a)) && tell("names what isn't there", e)));
		all("th:not([scope])").forEach(e => tell("heading of nothing", e));
		const ids = new Set();
		all("[id]").forEach(e => ids.has(e.id) ? tell("id twice", e) : ids.add(e.id));
		let level = 1;
		all("h1, h2, h3, h4").forEach(e => { const l = +e.localName[1]; if (l > level + 1) tell("heading out of order", e); level = l; });
		if (!document.documentElement.lang) wrong.push("no language");
		return wrong;
	})()`)
}

// visible reports whether the first element that a selector finds takes any room.
func (x *tab) visible(selector string) bool {
	x.t.Helper()
	return eval[bool](x, fmt.Sprintf(`(e => !!e && e.getClientRects().length > 0 && e.checkVisibility({contentVisibilityAuto: true}))(document.querySelector(%q))`, selector))
}

// inked counts the pixels of the chart that don't have the colour of its background, 0 if
// hardly any has.
func (x *tab) inked(background string) int {
	x.t.Helper()
	return eval[int](x, fmt.Sprintf(`(() => {
		const c = document.getElementById("chart"), d = c.getContext("2d").getImageData(0, 60, c.width, c.height - 60).data;
		const [r, g, b] = %q.match(/\d+/g);
		let back = 0;
		for (let i = 0; i < d.length; i += 4) back += d[i] == r && d[i + 1] == g && d[i + 2] == b;
		return back > d.length / 16 ? d.length / 4 - back : 0;
	})()`, background))
}
