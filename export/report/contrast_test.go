package report

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
)

// TestContrast wants what people with weak eyes need, by WCAG 2.1: 4.5 for text, 3 for
// what is drawn.
func TestContrast(t *testing.T) {
	schemes := strings.SplitN(pageCSS, "@media", 3)
	for i, name := range []string{"light", "dark"} {
		luminance := make(map[string]float64)
		for _, m := range regexp.MustCompile(`--([a-z0-9-]+): #([0-9a-f]{3,6})\b`).FindAllStringSubmatch(schemes[i], -1) {
			luminance[m[1]] = brightness(m[2])
		}
		if len(luminance) < 20 {
			t.Fatalf("%s: %d colours are read", name, len(luminance))
		}
		want := func(least float64, ink string, papers ...string) {
			for _, paper := range papers {
				a, b := luminance[ink], luminance[paper]
				if c := (max(a, b) + .05) / (min(a, b) + .05); c < least {
					t.Errorf("%s: %s on %s has a contrast of %.1f, want %.1f", name, ink, paper, c, least)
				}
			}
		}
		want(4.5, "text", "bg", "surface", "raised", "warn-bg", "culprit")
		want(4.5, "muted", "bg", "surface", "raised")
		want(4.5, "accent", "bg", "surface")
		want(4.5, "accent-text", "accent")
		for _, mark := range []string{"f0", "f1", "f2", "f3", "f4", "f5", "f6", "fnone", "alarm", "s0", "s2", "s3"} {
			want(3, mark, "bg", "surface")
		}
	}
}

// brightness is the relative luminance of a colour in hexadecimal digits.
func brightness(hex string) float64 {
	if len(hex) == 3 {
		hex = fmt.Sprintf("%c%[1]c%c%[2]c%c%[3]c", hex[0], hex[1], hex[2])
	}
	var rgb [3]int
	fmt.Sscanf(hex, "%02x%02x%02x", &rgb[0], &rgb[1], &rgb[2])
	var l float64
	for i, weight := range []float64{.2126, .7152, .0722} {
		c := float64(rgb[i]) / 255
		if c <= .04045 {
			l += weight * c / 12.92
		} else {
			l += weight * math.Pow((c+.055)/1.055, 2.4)
		}
	}
	return l
}
