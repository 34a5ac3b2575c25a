package live

import (
	"math"
	"testing"
)

// FuzzAnswer: whatever a target answers is an error or a sample of which no figure is
// negative.
func FuzzAnswer(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parseAnswer(text)
		if err != nil || a.Reply != nil {
			return
		}
		s := &Sample{Form: JSON}
		s.read(a)
		for _, old := range []*Sample{nil, s} {
			for _, span := range s.Since(old) {
				figures := []float64{span.BusyPercent(), span.IdlePercent(), span.SleepPercent(), span.GapPercent(), span.CyclesPerPacket(), span.UpcallsPerSecond()}
				for m := range NumMetrics {
					h := &span.Histograms[m]
					for _, e := range []Estimate{h.Percentile(50), h.Percentile(99.9), h.Max()} {
						figures = append(figures, e.Value)
						span.Format(m, e)
					}
				}
				for i, v := range figures {
					if v < 0 && span.Seconds >= 0 && !math.Signbit(span.Hz) {
						t.Errorf("figure %d is %v", i, v)
					}
				}
			}
		}
	})
}
