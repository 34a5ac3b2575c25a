//go:build linux && !amd64

package cause

// oldCallName names the calls that newer architectures have not.
func oldCallName(int) string { return "" }
