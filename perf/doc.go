// Package perf is a flight recorder for poll-mode (busy polling) packet loops.
//
// A loop links it in and tells a Recorder what it does: which rx queue it polls,
// which batches it receives, what it sends. The recorder keeps cycles, packets and
// batch sizes of every pass of the loop ("iteration") in histograms and in circular
// histories of iterations and milliseconds. Anybody may take a Snapshot of it,
// which is exact, never torn, and costs the loop a few microseconds.
//
// Inside, a pass writes one record of 64 bytes and reads the clock once (once more
// for every rx queue but the first). Every 64 passes the records are summed up in
// tight loops. What that takes, and what answering readers takes, is left out of the
// iterations and shown as the recorder's own time, so that
//
//	wall time = cycles of iterations + sleep + gaps
//
// holds to the tick, and no stall can hide between two passes.
//
// Run the loop with GODEBUG=asyncpreemptoff=1 in the environment and GOMAXPROCS at
// least one above the number of loops. Go otherwise interrupts a busy goroutine some
// tens of times a second, for 160 microseconds and at worst for milliseconds.
package perf
