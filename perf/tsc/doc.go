// Package tsc reads the processor's time stamp counter and turns its ticks into
// seconds and wall-clock time.
//
// On amd64 Now is the TSC, on arm64 the virtual counter CNTVCT_EL0. Elsewhere,
// with the build tag purego, and on an amd64 processor whose TSC does not run at
// a constant rate, it is Go's monotonic clock in nanoseconds. All of them are
// called ticks; Clock says how many make a second.
//
// Do not use it to time anything that takes longer than a poll loop's pass
// without need: time.Now costs about 50 ns where this costs 10 to 20, but it is
// steered by NTP and this is not.
package tsc
