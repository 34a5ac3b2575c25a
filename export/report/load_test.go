package report

import (
	"bytes"
	"context"
	"testing"
)

// testTenThousand: so many stalls stay usable. The bounds are those of a person's
// patience, on a machine that does other things besides.
func testTenThousand(t *testing.T, browser context.Context) {
	p := sample(10_000)
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 16<<20 {
		t.Errorf("the page has %d bytes", b.Len())
	}
	x := open(t, browser, p, setup{})
	x.settled()
	if ms := eval[float64](x, `performance.getEntriesByType("navigation")[0].domComplete`); ms > 10_000 {
		t.Errorf("the page is ready after %.0f ms", ms)
	} else {
		t.Logf("%d bytes, ready after %.0f ms", b.Len(), ms)
	}
	if n := eval[int](x, `document.getElementsByTagName("*").length`); n > 6000 {
		t.Errorf("there are %d elements for 10,000 stalls", n)
	}
	x.shot("ten-thousand")
	// step returns how long a key takes until its picture is there, the median of nine times.
	step := func(key string) float64 {
		t.Helper()
		return eval[float64](x, `(async () => {
			const chart = document.getElementById("chart"), drawn = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
			const took = [];
			for (let i = 0; i < 9; i++) {
				const before = performance.now();
				chart.dispatchEvent(new KeyboardEvent("keydown", {key: "`+key+`"}));
				await drawn();
				took.push(performance.now() - before);
			}
			return took.sort((a, b) => a - b)[4];
		})()`)
	}
	for _, key := range []string{"+", "-", "ArrowRight", "ArrowDown", "PageDown"} {
		if ms := step(key); ms > 2000 {
			t.Errorf("key %s takes %.0f ms", key, ms)
		} else {
			t.Logf("key %s takes %.0f ms", key, ms)
		}
	}
	x.quiet()
}
