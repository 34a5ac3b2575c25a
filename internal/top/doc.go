// Package top is the full-screen view of what the PMDs of a target do right now: a row
// for each PMD, and under them the details of the one that is selected. It is a
// bubbletea model over the samples of package live.
package top
