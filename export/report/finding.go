package report

// Finding is what follows from the evidence.
type Finding struct {
	Title      string
	Confidence string   // a word: "certain", "likely", "possible"
	Text       []string // what it means, in paragraphs
	Facts      []Fact
	Stalls     []int // indices into Page.Stalls of those that it is about
	Evidence   []Line
	Steps      []Step
}

// Line is a line of what was read.
type Line struct {
	Source string
	Number int // from 1, 0 if there is none
	Text   string
	Stall  int // index into Page.Stalls of the one that it shows, negative if none
}

// Step is what to do next.
type Step struct {
	Text    string
	Command string // to be typed, if there is one
}
