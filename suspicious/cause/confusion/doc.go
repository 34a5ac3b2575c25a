// Package confusion tries the probes of package cause on the real thing: it runs a busy
// loop on a core of its own, makes it slow in known ways, and tables what was named as
// the cause against what was done.
package confusion
