// Package report writes what is known about stalls as one HTML file: for people, for
// the ticket, for the colleague without the tool. A [Page] is what is to be told,
// wherever it comes from: an investigation of logs or a look at a running program.
//
// The file needs nothing but itself. It asks no network, and its content security
// policy forbids it to; its script draws the timelines and may run because the
// policy names its hash. Without the script, and on paper, it has the findings, an
// overview of every thread and the longest stalls as tables.
//
// Names and messages of any origin may be in a page: what is no UTF-8, or would
// change how the text around it is read, is replaced by a sign that one sees.
package report
