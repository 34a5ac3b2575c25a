package observe

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestDocs wants every member of the records to be explained in docs/observe.md.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/observe.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range []struct {
		heading string
		types   []any
	}{
		{"### thread", []any{Thread{}}},
		{"### spell", []any{Spell{}}},
		{"### iteration", []any{Iteration{}}},
		{"### summary", []any{Summary{}, ThreadSummary{}, CauseSum{}, CoreSummary{}}},
	} {
		_, part, ok := strings.Cut(string(text), section.heading+"\n")
		if !ok {
			t.Fatalf("there is no section %q", section.heading)
		}
		part, _, _ = strings.Cut(part, "\n### ")
		for _, v := range section.types {
			typ := reflect.TypeOf(v)
			for i := range typ.NumField() {
				name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
				if name == "" {
					t.Errorf("%s.%s has no name in JSON", typ.Name(), typ.Field(i).Name)
				}
				if !strings.Contains(part, "`"+name+"`") {
					t.Errorf("the section %q doesn't explain %q", section.heading, name)
				}
			}
		}
	}
}
