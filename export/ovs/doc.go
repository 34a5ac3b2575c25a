// Package ovs writes and reads the text that Open vSwitch's commands
// dpif-netdev/pmd-perf-show, pmd-stats-show, pmd-rxq-show and pmd-sleep-show
// print, reads that of coverage/show, and turns a [perf.Snapshot] into that text or into
// JSON.
//
// All its functions and types are plain values: nothing is shared, so any
// goroutine may use them; one report must not be changed by two at once.
//
// # Reports
//
// A report keeps what was printed, in the order in which it was printed:
// [PerfReport], [StatsReport], [RxqReport] and [SleepReport]. Each has a Parse
// function and a String method, and String gives back the text that was parsed,
// byte for byte in the layout of OVS 3.1. (One exception: the original's
// "Simple Match hits:" row has no blank before a value of twelve digits. The
// reader accepts that; the writer keeps a blank there.)
//
// The text may be of any version from 2.10 to 4.0, and of pmd-stats-show and
// pmd-rxq-show from 2.6 on. The Value methods know what the versions call the same
// thing, and that a row may be left out because it would be 0.
//
// A row that the text doesn't have is not in the report; nothing is filled in.
// A line that can't be read is listed with its number in the report's Unread. A
// text in which nothing at all can be read is an error, a [SyntaxError]. An empty
// text is an empty report, since that is what OVS prints for a core that has no
// PMD thread.
//
// # From a snapshot to text
//
// There is one way from numbers to text: snapshot, report, text. The Build
// functions compute the derived figures (us/it, Kpps, cycles/pkt ...) in one place.
//
// They print what the original prints, except where the original is wrong:
// an iteration or millisecond that was never recorded has no row, rather than a
// row of zeros; the Kpps column of the millisecond history is packets per real
// millisecond, since a row may have lasted longer than one; a figure that would be a
// division by zero is 0, not "-nan"; and where the frequency of the time stamp counter
// isn't known, the figures that need it are left out, rather than computed with 1 Hz.
// The average cost of an upcall is one over the upcalls that were timed, whether their
// flow could be installed or not.
//
// The "main thread" block of pmd-perf-show, which OVS prints since 4.0 and which has
// no cycles, is an option.
//
// [Document] is the same as JSON, with more in it: what only JSON has are exact
// cycles by state, percentiles, gaps and reloads, and the queues.
package ovs
