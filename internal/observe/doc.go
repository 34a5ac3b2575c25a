// Package observe watches the poll-mode threads of a process from outside: when each was
// off its core for long, and why. It needs no help of the process, which may be Open
// vSwitch or anything else whose threads can be told by their names.
//
// The probes are those of package cause, one set for every thread. They keep up with
// threads that come and go, and with a process that is started again. Spells off the core
// are told as they end; suspicious iterations that the process logs are told with the
// spells that made them slow.
package observe
