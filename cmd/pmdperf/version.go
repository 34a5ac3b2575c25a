package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersionCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version(buildInfo()))
			return err
		},

		DisableFlagsInUseLine: true,
	}
}

// buildInfo returns what the go command noted in this binary, or nil.
func buildInfo() *debug.BuildInfo {
	info, _ := debug.ReadBuildInfo()
	return info
}

// version returns a line with the version of the binary, of Go and of the system.
func version(info *debug.BuildInfo) string {
	return fmt.Sprintf("pmdperf %s %s %s/%s", moduleVersion(info), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// moduleVersion returns the version of the module that the binary was built from.
func moduleVersion(info *debug.BuildInfo) string {
	if info == nil || info.Main.Version == "" {
		return "(unknown)"
	}
	return info.Main.Version
}
