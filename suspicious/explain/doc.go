// Package explain joins the reports of a suspicious.Supervisor and the probes of
// package cause: it keeps the probes of all loops of a program, and says of each report
// why its iteration took long.
package explain
