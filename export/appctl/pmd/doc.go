// Package pmd makes the recorders of a program answer Open vSwitch's commands for
// poll-mode threads on a control socket, and some commands of its own. One call
// is all that an embedder needs:
//
//	server, err := appctl.Listen(appctl.Config{Name: "demo"},
//		pmd.Commands(registry, pmd.Options{})...)
//
// # Commands of Open vSwitch
//
//	dpif-netdev/pmd-perf-show     counters, histograms and histories
//	dpif-netdev/pmd-stats-show    counters
//	dpif-netdev/pmd-stats-clear   everything counts from now on
//	dpif-netdev/pmd-rxq-show      rx queues and what they take of the time
//	dpif-netdev/pmd-sleep-show    how long PMDs may sleep
//	dpif-netdev/pmd-perf-log-set  which iterations are suspicious
//
// Their names, usages and texts are those of Open vSwitch. Of arguments they are
// stricter: options may come in any order, also after the datapath's name, but what
// makes no sense (an unknown core, an option twice, a bad number) is an error that
// says what would make sense, where the original ignores it. A clear is done when
// its answer is there, so that a show after it shows nothing older.
//
// pmd-perf-log-set sets what is suspicious for each PMD (-pmd core) and shows it. An
// option that is not given stays as it is; without arguments it only shows. Switched on
// while a PMD's level is lower, it raises that to detailed and says so. Besides the
// options of Open vSwitch there are
//
//	-poll-gap usec            an iteration and its sleep took longer
//	-gap usec                 the time before the iteration that belongs to none was longer
//	-cycles-per-packet cycles packets took more on average
//	-upcalls count            there were more in an iteration
//	-cycles-per-upcall cycles upcalls took more on average
//	-full-batches count       so many full batches in a row of one rx queue
//	-drops count              the loop or tx queues dropped so many packets in an iteration
//	-rx-drops count           rings of rx queues dropped so many, as reported in an iteration
//	-adaptive times           it took so many times the 99.9th percentile of the last 10 s
//
// Every threshold, -us and -q included, also takes "off".
//
// # Commands of our own
//
//	pmdperf/percentiles   percentiles of every histogram
//	pmdperf/reloads       how often and how long the loops were parked
//	pmdperf/packet-sizes  packets by size, of every queue
//	pmdperf/level         how much is recorded, get and set
//	pmdperf/overhead      what the recorder itself took of the time
//	pmdperf/events        the last suspicious iterations, and one with all around it
//	pmdperf/clock         where ticks come from, and which probes run
//
// With -hdr, pmdperf/percentiles prints one histogram of one PMD in HdrHistogram's
// percentile distribution format, which its plotters read.
//
// # Answers
//
// Every command has a text and a JSON form. All PMDs are asked at the same time. One
// that does not answer, since its loop is stuck, is left out of what is shown, with
// a line at the end of the text that begins with "note:" or in the member "missing" of
// the JSON. Where -pmd names it, and where a command changes something, that is an
// error; what the error doesn't name was changed.
package pmd
