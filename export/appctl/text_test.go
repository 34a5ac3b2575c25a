package appctl

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestQuote(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"", `""`},
		{"a<b>&c", `"a<b>&c"`},
		{"\"\\/", `"\"\\/"`},
		{"\n\t\r\b\f\x01\x1f\x7f", `"\n\t\r\u0008\u000c\u0001\u001f` + "\x7f\""},
		{"a\x00b\x00", `"ab"`},
		{"grüße \u2028 😀", "\"grüße \u2028 😀\""},
		{"\xff\xfe", "\"\xff\xfe\""},
	} {
		if got := string(appendQuoted(nil, test.in)); got != test.want {
			t.Errorf("quote %q: got %s, want %s", test.in, got, test.want)
		}
	}
}

func TestUnquote(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{`""`, ""},
		{`"plain"`, "plain"},
		{`"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t"},
		{`"\u0041\u00fc\u20AC"`, "Aü€"},
		{`"\ud83d\ude00!"`, "😀!"},
		{`"\ufffd\\u0000"`, "\ufffd\\u0000"},
		{"\"\xff\\n\xfe\"", "\xff\n\xfe"},
	} {
		if got := unquote([]byte(test.in)); got != test.want {
			t.Errorf("unquote %s: got %q, want %q", test.in, got, test.want)
		}
	}
}

func TestBadEscape(t *testing.T) {
	for _, test := range []struct {
		in, dropped string
		at          int
	}{
		{`"fine"`, `"fine"`, -1},
		{`"\ud83d\ude00 \uFFFD \ufffd"`, `"\ud83d\ude00 \uFFFD \ufffd"`, -1},
		{`"\\u0000"`, `"\\u0000"`, -1},
		{`"a\u0000b"`, `"ab"`, 2},
		{`"\\\u0000"`, `"\\"`, 3},
		{`"\ud83d"`, `""`, 1},
		{`"\ude00\ud83d"`, `""`, 1},
		{`"\ud83d\u0041"`, `"\u0041"`, 1},
		{`"\ud83d\n"`, `"\n"`, 1},
		{`{"\u0000k":"\u0000\u0000"}`, `{"k":""}`, 2},
	} {
		if got := badEscape([]byte(test.in)); got != test.at {
			t.Errorf("bad escape in %s: got %d, want %d", test.in, got, test.at)
		}
		if got := string(dropBadEscapes([]byte(test.in))); got != test.dropped {
			t.Errorf("without bad escapes, %s: got %s, want %s", test.in, got, test.dropped)
		}
	}
}

func FuzzQuote(f *testing.F) {
	f.Add("a<b>\x00\n\xff\u2028\"\\")
	f.Fuzz(func(t *testing.T, s string) {
		quoted := appendQuoted(nil, s)
		if badEscape(quoted) >= 0 {
			t.Fatalf("%q quoted has an escape that is refused: %s", s, quoted)
		}
		want := strings.ReplaceAll(s, "\x00", "")
		if got := unquote(quoted); got != want {
			t.Fatalf("%q comes back as %q", want, got)
		}
		var std string
		if err := json.Unmarshal(quoted, &std); err != nil {
			t.Fatalf("%q quoted is not JSON: %s: %v", s, quoted, err)
		}
		if utf8.ValidString(want) && std != want {
			t.Fatalf("encoding/json reads %q as %q", want, std)
		}
	})
}

func FuzzUnquote(f *testing.F) {
	f.Add([]byte(`"\u0041\ud83d\ude00\n\\u0000\u0000\ud83d\/"`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) || len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
			t.Skip()
		}
		clean := dropBadEscapes(text)
		// Dropping may join what surrounds the dropped, never into worse than JSON.
		if !json.Valid(clean) {
			t.Fatalf("%s without bad escapes is not JSON: %s", text, clean)
		}
		if badEscape(text) >= 0 || !utf8.Valid(text) {
			unquote(clean)
			return
		}
		var want string
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if got := unquote(text); got != want {
			t.Fatalf("%s is %q, got %q", text, want, got)
		}
	})
}
