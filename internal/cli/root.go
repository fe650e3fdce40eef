// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	groupCluster = "cluster"
	groupUse     = "use"
	groupCode    = "code"
)

// helpTemplate shows the one-line summary above the paragraph, which cobra's own does not.
const helpTemplate = `{{.Short}}

{{with .Long}}{{. | trimTrailingWhitespaces}}

{{end}}{{.UsageString}}`

// usageTemplate is cobra's own without what only larger programs need, and with our word for a subcommand.
const usageTemplate = `Usage:
  {{.UseLine}}

Examples:
{{.Example}}
{{- range $group := .Groups}}

{{.Title}}{{range $.Commands}}{{if and (eq .GroupID $group.ID) .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{- end}}
{{- if .HasAvailableSubCommands}}

Others:{{range .Commands}}{{if and (eq .GroupID "") (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{- end}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
{{- if .HasAvailableSubCommands}}

More about a verb: opdock VERB --help
{{- end}}
`

func (a *App) newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "opdock VERB [FLAG]...",
		Short: "A dock for Kubernetes operators",
		Long: `Opdock runs a real Kubernetes control plane in one process on this machine: API server,
controllers, scheduler, garbage collection and simulated nodes. No containers, no
privileges and nothing to install. Run operators on it, test them and see them fail.

Verbs work on the cluster that --name says, or else $OPDOCK_CLUSTER, or else "dock"; those that work on a
project (dev, install, deploy, ...) have a cluster named like the project instead of "dock".`,
		Example: `  opdock run                             # run the fleet on a cluster and watch it
  opdock up                              # start a cluster
  opdock kubectl get nodes               # use it
  KUBEBUILDER_ASSETS=$(opdock assets) go test ./...
  opdock down                            # stop it; its objects are kept`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              unknownVerb,

		DisableFlagsInUseLine:      true,
		SuggestionsMinimumDistance: 2,

		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetHelpTemplate(helpTemplate)
	root.SetUsageTemplate(usageTemplate)
	root.SetHelpCommand(newHelp())
	root.SetFlagErrorFunc(wrongFlag)

	root.AddGroup(&cobra.Group{ID: groupCluster, Title: "The cluster:"}, &cobra.Group{ID: groupUse, Title: "Using it:"},
		&cobra.Group{ID: groupCode, Title: "Writing operators:"})
	add := func(group string, verbs ...*cobra.Command) {
		for _, verb := range verbs {
			verb.GroupID = group
			verb.DisableFlagsInUseLine = true
			root.AddCommand(verb)
		}
	}
	add(groupCluster, a.newUp(), a.newDown(), a.newStatus())
	add(groupUse, a.newRun(), a.newKubectl(), a.newKubeconfig(), a.newAssets())
	add(groupUse, a.newWhy())
	add(groupUse, a.newExperiment())
	add(groupCode, a.newInit(), a.newCreate(), a.newDelete(), a.newGenerate(), a.newDev())
	add(groupCode, a.newInstall(), a.newUninstall(), a.newDeploy(), a.newUndeploy(), a.newBuild())
	add("", a.newVersion(), newCompletion(), a.newBuildControlPlane())
	return root
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [VERB]",
		Short:   "Show the help of a verb",
		Long:    "The same as opdock VERB --help.",
		Example: "  opdock help up",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return &usageError{message: "help takes one verb", hints: []string{seeHelp(cmd)}}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			verb, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return unknownVerb(cmd.Root(), rest)
			}
			verb.InitDefaultHelpFlag() // as running the verb with --help would
			return verb.Help()
		},
		DisableFlagsInUseLine: true,
	}
}

// unknownVerb is the argument check of the root command: an argument that reaches it is not the name of a verb.
func unknownVerb(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hints := elsewhere(root, args[0])
	if hints == nil {
		hints = didYouMean(root.SuggestionsFor(args[0]))
	}
	return &usageError{message: fmt.Sprintf("there is no verb %q", args[0]), hints: append(hints, seeHelp(root))}
}

// wrongFlag tells about a flag that does not exist or has a value that it cannot have.
func wrongFlag(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); !cmd.HasParent() && len(args) > 0 {
		return unknownVerb(cmd, args) // and therefore the flag is unknown as well
	}
	message := err.Error()
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		flag, value := invalid.GetFlag(), invalid.GetValue()
		message = fmt.Sprintf("--%s cannot be %q", flag.Name, value)
		switch flag.Value.Type() {
		case "int":
			message += ": that is not a number"
		case "duration":
			message += ": that is not a time like 90s or 2m"
		case "bool":
			message += ": that is neither true nor false"
		default:
			message += ": " + errors.Unwrap(invalid).Error()
		}
	}
	hints := didYouMean(similarFlags(cmd, err))
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		hints = append(elsewhere(cmd, unknown.GetSpecifiedName()), hints...)
	}
	return &usageError{message: message, hints: append(hints, seeHelp(cmd))}
}

// noArguments is the argument check of verbs that take flags only.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hints := elsewhere(cmd, args[0])
	switch {
	case hints != nil:
	case cmd.Flags().Lookup("push") != nil:
		hints = []string{fmt.Sprintf("to name the image: %s --image %s", cmd.CommandPath(), shellQuote(args[0]))}
	case cmd.Flags().Lookup("name") != nil:
		hints = []string{fmt.Sprintf("to name a cluster: %s --name %s", cmd.CommandPath(), shellQuote(args[0]))}
	default:
		hints = []string{seeHelp(cmd)}
	}
	return &usageError{message: fmt.Sprintf("%s takes no arguments, but was given %q", cmd.Name(), args[0]), hints: hints}
}

func seeHelp(cmd *cobra.Command) string { return "see: " + cmd.CommandPath() + " --help" }

// addNameFlag gives a verb the flag that says which cluster it works on.
func (a *App) addNameFlag(cmd *cobra.Command, name *string, byDefault, usage string) {
	cmd.Flags().StringVar(name, "name", byDefault, usage)
	a.complete(cmd, "name", func() []string {
		all, _ := a.Dock.List() // what can be read is completed
		names := make([]string, 0, len(all))
		for _, s := range all {
			names = append(names, s.Name)
		}
		return names
	})
}

// complete gives a flag shell completion.
func (a *App) complete(cmd *cobra.Command, flag string, values func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag,
		func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return values(), cobra.ShellCompDirectiveNoFileComp
		})
	if err != nil {
		panic(err) // the flag does not exist: a mistake in this program, found by any test that runs it
	}
}
