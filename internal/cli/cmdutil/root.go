// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Groups of verbs in the help.
const (
	GroupCluster = "cluster"
	GroupUse     = "use"
	GroupCode    = "code"
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

Other Commands:{{range .Commands}}{{if and (eq .GroupID "") (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{- end}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
{{- if .HasAvailableSubCommands}}

Use "opdock COMMAND --help" for more information about a command.
{{- end}}
`

// NewRoot returns the command without any verb.
func (a *App) NewRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "opdock COMMAND [FLAG]...",
		Short: "A dock for Kubernetes operators",
		Long: `Opdock runs a real Kubernetes control plane in one process on this machine: API server, controllers,
scheduler, garbage collection and simulated nodes. It needs no containers, no privileges and no
installation. Use it to write, run and test operators, and to see why they do what they do.

Commands use the cluster that --name selects. The default is $OPDOCK_CLUSTER, or "dock" if it is not
set. Commands for a project, such as dev, install and deploy, use a cluster named after the project.`,
		Example: `  opdock run                             # run the fleet on a cluster and watch it
  opdock up                              # start a cluster
  opdock kubectl get nodes               # use the cluster
  KUBEBUILDER_ASSETS=$(opdock assets) go test ./...
  opdock down                            # stop the cluster and keep its objects`,
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

	root.AddGroup(&cobra.Group{ID: GroupCluster, Title: "Cluster Commands:"}, &cobra.Group{ID: GroupUse, Title: "Commands That Use a Cluster:"},
		&cobra.Group{ID: GroupCode, Title: "Operator Project Commands:"})
	return root
}

// AddVerbs adds verbs to a group of the root command; an empty group means other commands.
func AddVerbs(root *cobra.Command, group string, verbs ...*cobra.Command) {
	for _, verb := range verbs {
		verb.GroupID = group
		verb.DisableFlagsInUseLine = true
		root.AddCommand(verb)
	}
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]...",
		Short:   "Show the help of a command",
		Long:    "Shows the same text as \"opdock COMMAND --help\".",
		Example: "  opdock help up\n  opdock help create api",
		RunE: func(cmd *cobra.Command, args []string) error {
			verb, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			switch {
			case len(rest) > 0 && verb.HasSubCommands() && verb != cmd.Root():
				return verb.Args(verb, rest)
			case len(rest) > 0 && verb != cmd.Root():
				return &UsageError{Message: fmt.Sprintf("%q has no command %q", verb.CommandPath(), rest[0]), Hints: []string{SeeHelp(verb)}}
			case len(rest) > 0:
				return unknownVerb(cmd.Root(), rest)
			}
			verb.InitDefaultHelpFlag() // as running the verb with --help would
			return verb.Help()
		},
		DisableFlagsInUseLine: true,
	}
}
