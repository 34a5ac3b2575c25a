package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newRoot returns the command with all verbs. args is the whole command line, which
// the verb run has the system run again.
func newRoot(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "pmdperf",
		Short: "A flight recorder for poll-mode packet loops",
		Long: `pmdperf is a flight recorder for poll-mode packet loops: it records every pass
of the loop and shows where the time went, in Open vSwitch's formats.`,
		Example: `  pmdperf run              # forward packets for 10 s and show the recording
  pmdperf help run         # everything about a verb`,
		Args:              knownVerb,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors:     true,
		SilenceUsage:      true,
		Version:           version(buildInfo()),
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SuggestionsMinimumDistance = 1 // a letter wrong
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages ", "Flags.FlagUsagesWrapped 90 "))
	root.AddCommand(newRunCmd(args), newVersionCmd(), newCompletionCmd())
	root.AddCommand(newBenchCmd(args))
	root.AddCommand(newAppctlCmd(), newShowCmd(), newTopCmd(), newObserveCmd(), newExporterCmd())
	root.AddCommand(newInvestigateCmd(), newReportCmd())
	root.SetHelpCommand(newHelpCmd())
	return root
}

// knownVerb is the check of the root's arguments: whatever is left there is no verb.
func knownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := seeHelp(cmd)
	if s := cmd.SuggestionsFor(args[0]); len(s) > 0 {
		hint = "did you mean " + orList(s) + "?"
	}
	return usagef("unknown command %q: %s", args[0], hint)
}

// noArgs is the check of verbs that take no arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unexpected argument %q: %s", args[0], seeHelp(cmd))
	}
	return nil
}

func seeHelp(cmd *cobra.Command) string { return fmt.Sprintf("see '%s --help'", cmd.CommandPath()) }

// flagError puts what is wrong with a flag in our words.
func flagError(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &unknown):
		name := "--" + unknown.GetSpecifiedName()
		if short := unknown.GetSpecifiedShortnames(); short != "" {
			name = "-" + short
		}
		return usagef("unknown flag %s: %s", name, seeHelp(cmd))
	case errors.As(err, &missing):
		flag := missing.GetFlag()
		return usagef("--%s needs a value: write --%s=%s", flag.Name, flag.Name, strings.ToUpper(flag.Value.Type()))
	case errors.As(err, &invalid):
		if flag := invalid.GetFlag(); flag.Value.Type() == "bool" {
			return usagef("--%s: %q is neither true nor false: write --%s or leave it out", flag.Name, invalid.GetValue(), flag.Name)
		}
		return usagef("--%s: %w", invalid.GetFlag().Name, invalid.Unwrap())
	}
	return usagef("%w: %s", err, seeHelp(cmd))
}

// newHelpCmd returns the verb help, which unlike cobra's own fails where there is
// nothing to tell.
func newHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Tell about a command",

		DisableFlagsInUseLine: true,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			if len(args) == 0 {
				for _, c := range cmd.Root().Commands() {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil {
				return asUsage(err)
			}
			if len(rest) > 0 {
				return knownVerb(about, rest)
			}
			about.InitDefaultHelpFlag()
			about.InitDefaultVersionFlag()
			return about.Help()
		},
	}
}

// newCompletionCmd returns the verb completion.
func newCompletionCmd() *cobra.Command {
	script := map[string]func(*cobra.Command, io.Writer) error{
		"bash":       func(c *cobra.Command, w io.Writer) error { return c.GenBashCompletionV2(w, true) },
		"fish":       func(c *cobra.Command, w io.Writer) error { return c.GenFishCompletion(w, true) },
		"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
		"zsh":        (*cobra.Command).GenZshCompletion,
	}
	shells := []string{"bash", "fish", "powershell", "zsh"}
	return &cobra.Command{
		Use:     "completion " + strings.Join(shells, "|"),
		Short:   "Print the completion script for a shell",
		Example: "  source <(pmdperf completion bash)",

		DisableFlagsInUseLine: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return usagef("completion needs one shell: choose %s", orList(shells))
			}
			return nil
		},
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			return script[args[0]](cmd.Root(), cmd.OutOrStdout())
		},
	}
}

// orList returns "a, b or c".
func orList[T ~string](list []T) string {
	var b strings.Builder
	for i, s := range list {
		switch {
		case i == 0:
		case i == len(list)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(string(s))
	}
	return b.String()
}
