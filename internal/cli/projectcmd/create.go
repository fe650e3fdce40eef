// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/scaffold"
)

func NewCreate(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	return cmdutil.NewGroup(&cobra.Command{
		Use:   "create WHAT [FLAG]...",
		Short: "Add a kind or a webhook to a project",
		Long: `Works in projects that opdock init or kubebuilder v4 have made. What is made is written down in PROJECT, so that
both programs can go on from there. Webhooks of kubebuilder before v4.16 may be for an older controller-runtime
than that of opdock init, and not compile with it.`,
		Example: `  opdock create api --group ship --version v1 --kind Frigate
  opdock create webhook --group ship --version v1 --kind Frigate --defaulting --programmatic-validation`,
	}, a.newCreateAPI(), a.newCreateWebhook())
}

// apiName is how flags name a kind.
type apiName struct{ group, version, kind, apiVersion string }

func (n *apiName) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&n.group, "group", "", "group of the kind, without the project's domain")
	cmd.Flags().StringVar(&n.version, "version", "", "version, such as v1 or v1alpha1")
	cmd.Flags().StringVar(&n.kind, "kind", "", "kind, such as Frigate")
	cmd.Flags().StringVar(&n.apiVersion, "api-version", "", "group with domain, and version, instead of --group and --version: ship.example.com/v1")
}

// resolve takes --api-version apart, which only the domain of the project makes possible.
func (n *apiName) resolve(dir string) error {
	if n.apiVersion == "" {
		return nil
	}
	if n.group != "" || n.version != "" {
		return &cmdutil.UsageError{Message: "--api-version says group and version already", Hints: []string{"leave out --group and --version"}}
	}
	group, version, err := scaffold.SplitAPIVersion(dir, n.apiVersion)
	n.group, n.version = group, version
	return explainScaffold(err)
}

// askName asks for what the flags do not say.
func (a verbs) askName(cmd *cobra.Command, n *apiName) error {
	if a.Ask == nil || !onlyChanged(cmd, "dir", "quiet", "from", "empty", "force", "keep-edited") {
		return nil
	}
	var err error
	if n.group, err = a.Ask("Group of the kind, without the domain", ""); err != nil {
		return err
	}
	if n.version, err = a.Ask("Version", "v1"); err != nil {
		return err
	}
	n.kind, err = a.Ask("Kind, such as Frigate", "")
	return err
}

// addKindFlags adds the flags of all verbs that add something to a kind or take it away.
func (a verbs) addKindFlags(cmd *cobra.Command, n *apiName, f *scaffoldFlags) {
	a.addScaffoldFlags(cmd, f)
	cmd.Flags().BoolVar(&f.noGenerate, "no-generate", false, "do not generate deep copies and manifests afterwards")
	n.addFlags(cmd)
	a.completeKind(cmd, n, &f.dir)
}

// onKind finds out which kind is meant, and carries out what is planned for it.
func (a verbs) onKind(cmd *cobra.Command, n *apiName, f scaffoldFlags, done string, makePlan func() (*scaffold.Plan, error)) (*scaffold.Plan, error) {
	if err := notBelow(f.dir); err != nil {
		return nil, err
	}
	if err := a.RecoverProject(cmd.Context(), f.dir); err != nil {
		return nil, err
	}
	if err := a.askName(cmd, n); err != nil {
		return nil, err
	}
	if err := n.resolve(f.dir); err != nil {
		return nil, err
	}
	plan, err := makePlan()
	if err != nil {
		return nil, explainScaffold(err)
	}
	return plan, a.carryOut(cmd.Context(), plan, f, fmt.Sprintf("%s %s %s", done, n.kind, n.version))
}

func (a verbs) newCreateAPI() *cobra.Command {
	var (
		options                scaffold.APIOptions
		name                   apiName
		flags                  scaffoldFlags
		resource, controller   bool
		namespaced, deprecated bool
	)
	cmd := &cobra.Command{
		Use:   "api --group GROUP --version VERSION --kind KIND [FLAG]...",
		Short: "Add a kind and its controller to a project",
		Long: `Writes the Go types of a kind, a controller with tests, a sample, roles for users, and makes them part of main and
of the manifests. Then it generates what comes from the types, so that the project compiles and can be run.

The controller is a small example that works: it makes a Deployment of every object, with conditions and
events. --empty leaves that out. --from begins with something larger, under your names:

` + starterList() + `
A second version of a kind gets types only. Kinds of other modules, such as Deployments, are not supported.`,
		Example: `  opdock create api --group ship --version v1 --kind Frigate
  opdock create api --group ship --version v1 --kind Fleet --namespaced=false --short-name fl
  opdock create api --group ship --version v1 --kind Crew --from podcluster
  opdock create api --api-version ship.example.com/v1 --kind Raft --empty`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := a.onKind(cmd, &name, flags, "Created", func() (*scaffold.Plan, error) {
				options.Dir, options.Group, options.Version, options.Kind = flags.dir, name.group, name.version, name.kind
				options.NoResource, options.NoController, options.ClusterScoped = !resource, !controller, !namespaced
				return scaffold.CreateAPI(options)
			})
			if err != nil {
				return err
			}
			what := "types and its controller"
			if !slices.ContainsFunc(plan.Changes, func(one scaffold.Change) bool { return strings.HasSuffix(one.Path, "_controller.go") }) {
				what = "types"
			}
			if inCapitals(name.kind) {
				a.remark(flags, fmt.Sprintf("By the way, kinds are usually written like %s; %s works as well", capitalised(name.kind), name.kind))
			}
			a.suggest(flags, "run it, and say in its "+what+" what you want of it: "+a.inProject(flags, "dev", "--samples"))
			return nil
		},
	}
	a.addKindFlags(cmd, &name, &flags)
	cmd.Flags().StringVar(&options.Plural, "plural", "", "name in paths (default: the regular plural of the kind)")
	cmd.Flags().StringVar(&options.ShortName, "short-name", "", "what kubectl also calls it")
	cmd.Flags().BoolVar(&namespaced, "namespaced", true, "objects are in namespaces")
	cmd.Flags().BoolVar(&resource, "resource", true, "make the types")
	cmd.Flags().BoolVar(&controller, "controller", true, "make a controller")
	cmd.Flags().BoolVar(&options.Empty, "empty", false, "make types without fields and a controller that does nothing")
	cmd.Flags().StringVar(&options.From, "from", "", "begin with the starter of this name")
	cmd.Flags().BoolVar(&deprecated, "make", true, "")
	if err := cmd.Flags().MarkHidden("make"); err != nil {
		panic(err) // the flag does not exist: found by any test
	}
	a.Complete(cmd, "from", starterNames)
	return cmd
}

func starters() []scaffold.Starter {
	all, err := scaffold.Starters()
	if err != nil {
		panic(err) // they are part of this program: found by any test
	}
	return all
}

// inCapitals says whether a kind looks as if somebody had forgotten to release a key. Short ones are more likely acronyms.
func inCapitals(kind string) bool { return len(kind) > 2 && kind == strings.ToUpper(kind) }

func capitalised(kind string) string { return kind[:1] + strings.ToLower(kind[1:]) }

func starterNames() []string {
	var names []string
	for _, one := range starters() {
		names = append(names, one.Name)
	}
	return names
}

func starterList() string {
	var lines strings.Builder
	for _, one := range starters() {
		fmt.Fprintf(&lines, "  %-12s %s\n", one.Name, one.Description)
	}
	return lines.String()
}
