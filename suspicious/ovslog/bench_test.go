package ovslog

import (
	"os"
	"strings"
	"testing"
)

// BenchmarkRead reads the samples, many times over.
func BenchmarkRead(b *testing.B) {
	logs := samples(b)
	var text strings.Builder
	for _, name := range names(logs) {
		text.WriteString(logs[name])
	}
	s := text.String()
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(strings.NewReader(s))
		for range r.Records() {
		}
	}
}

// BenchmarkFile reads the file that OVSLOG_FILE names.
func BenchmarkFile(b *testing.B) {
	name := os.Getenv("OVSLOG_FILE")
	if name == "" {
		b.Skip("OVSLOG_FILE names no file")
	}
	for b.Loop() {
		f, err := os.Open(name)
		if err != nil {
			b.Fatal(err)
		}
		r := NewReader(f)
		for range r.Records() {
		}
		st, _ := f.Stat()
		b.SetBytes(st.Size())
		f.Close()
		b.Logf("%d events", r.Stats().Events)
	}
}
