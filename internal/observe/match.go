package observe

// Match reports whether a thread's name matches a pattern, in which * stands for any
// bytes, also for the slash of "pmd-c01/id:8", and ? for one.
func Match(pattern, name string) bool {
	// Where the last * was, and what it has swallowed so far.
	star, from := -1, 0
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p, n = p+1, n+1
		case star >= 0:
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
