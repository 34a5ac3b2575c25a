package appctl_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/pmdperf/pmdperf/export/appctl"
)

// A server with one command of its own, and a client that asks it.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	server, err := appctl.Listen(appctl.Config{
		RunDir:  dir,
		Name:    "forwarder",
		Version: "1.0",
	}, appctl.Command{
		Name:    "port/show",
		Usage:   "port...",
		MinArgs: 1,
		MaxArgs: appctl.NoMax,
		Text: func(_ context.Context, w io.Writer, ports []string) error {
			_, err := fmt.Fprintln(w, strings.Join(ports, " and ")+": up")
			return err
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	ctx := context.Background()
	socket, err := appctl.Resolve(dir, "forwarder")
	if err != nil {
		log.Fatal(err)
	}
	client, err := appctl.Dial(ctx, socket)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for _, request := range [][]string{{"version"}, {"port/show", "p0", "p1"}, {"port/show"}} {
		result, err := client.Call(ctx, request[0], request[1:]...)
		fmt.Printf("%s%d %v\n", result, appctl.ExitCode(err), err)
	}
	// Output:
	// forwarder (pmdperf) 1.0
	// 0 <nil>
	// p0 and p1: up
	// 0 <nil>
	// 2 "port/show" command requires at least 1 arguments
}
