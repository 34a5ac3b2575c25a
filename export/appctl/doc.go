// Package appctl is Open vSwitch's control protocol ("unixctl"), server and
// client: what ovs-appctl speaks over a Unix stream socket. An embedder lists
// its commands and gets a server that the unmodified ovs-appctl, and every
// script and exporter built on it, can ask; the client asks such servers, ours
// or a real ovs-vswitchd. The package knows nothing of what the commands do.
// It is for Linux: the pidfile rules are POSIX record locks and /proc.
//
// # Protocol
//
// Requests and replies are JSON objects one after the other, with no delimiter
// between them. A request has the members id, method and params, params being
// an array of strings:
//
//	{"id":0,"method":"list-commands","params":[]}
//
// It is answered by one of
//
//	{"id":0,"result":"text\n","error":null}
//	{"id":0,"error":"text\n"}
//
// The id comes back as the very bytes that were received, as ovs-appctl waits
// for ever when it doesn't recognise it. A result or error that is not empty
// always ends with a newline: clients up to Open vSwitch 3.3 print what they
// get, later ones add the newline where it is missing. NUL bytes are left out,
// and nothing is escaped that needn't be, since one known client searches the
// JSON text itself. Bytes that are not UTF-8 pass unchanged both ways, as they
// do in Open vSwitch. Whatever is not a request closes the connection without
// a reply, which ovs-appctl reports as "End of file".
//
// Requests on one connection are served one at a time and in order, so they may
// be pipelined; a client that shuts down its sending side still gets its
// replies. Connections are served concurrently.
//
// The command set-options --format json makes the connection answer in JSON:
// a command that has a JSON form then returns any JSON value, every other
// {"reply-format":"plain","reply":"text\n"}.
//
// # Files
//
// A server called NAME owns two files in the run directory: the pidfile
// NAME.pid and the socket NAME.PID.ctl. ovs-appctl finds a server by asking the
// kernel who holds the write lock on the pidfile (fcntl's F_GETLK) and compares
// that with the number in the file. A POSIX lock belongs to the process and is
// dropped as soon as the process closes any descriptor of the file, so nothing
// in a process may ever open and close the process's own pidfile; the client
// here takes care not to. While a server starts, its pidfile is locked but
// empty; the number appears when the socket can be connected to.
package appctl
