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

// NewCreate returns the verb create.
func NewCreate(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	return cmdutil.NewGroup(&cobra.Command{
		Use:   "create COMMAND [FLAG]...",
		Short: "Add a kind or a webhook to a project",
		Long: `Works in projects created by "opdock init" or by kubebuilder v4. The PROJECT file records what is created,
so you can use both tools on the same project. Webhooks created by kubebuilder before v4.16 may need an
older controller-runtime than "opdock init" uses, and may not compile with it.`,
		Example: `  opdock create api --group ship --version v1 --kind Frigate
  opdock create webhook --group ship --version v1 --kind Frigate --defaulting --programmatic-validation`,
	}, a.newCreateAPI(), a.newCreateWebhook())
}

// apiName is how flags name a kind.
type apiName struct{ group, version, kind, apiVersion string }

func (n *apiName) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&n.group, "group", "", "group of the kind, without the domain of the project")
	cmd.Flags().StringVar(&n.version, "version", "", "version, such as v1 or v1alpha1")
	cmd.Flags().StringVar(&n.kind, "kind", "", "kind, such as Frigate")
	cmd.Flags().StringVar(&n.apiVersion, "api-version", "", "group with domain, and version, such as ship.example.com/v1; replaces --group and --version")
}

// resolve takes --api-version apart, which only the domain of the project makes possible.
func (n *apiName) resolve(dir string) error {
	if n.apiVersion == "" {
		return nil
	}
	if n.group != "" || n.version != "" {
		return &cmdutil.UsageError{Message: "--api-version cannot be used with --group or --version", Hints: []string{"remove --group and --version"}}
	}
	group, version, err := scaffold.SplitAPIVersion(dir, n.apiVersion)
	n.group, n.version = group, version
	return explainScaffold(err)
}

// askName asks for values that the flags do not set.
func (a verbs) askName(cmd *cobra.Command, n *apiName) error {
	if a.Ask == nil || !onlyChanged(cmd, "dir", "quiet", "from", "empty", "force", "keep-edited") {
		return nil
	}
	ctx, dir := cmd.Context(), cmd.Flag("dir").Value.String()
	if err := scaffold.CheckProject(dir); err != nil {
		return explainScaffold(err) // before the questions, not after them
	}
	var err error
	if n.group, err = a.Ask(ctx, "Group of the kind, without the domain", "", func(group string) error { return scaffold.CheckGroup(dir, group) }); err != nil {
		return err
	}
	if n.version, err = a.Ask(ctx, "Version", "v1", scaffold.CheckVersion); err != nil {
		return err
	}
	n.kind, err = a.Ask(ctx, "Kind, such as Frigate", "", scaffold.CheckKind)
	return err
}

// addKindFlags adds the flags of all verbs that add something to a kind or take it away.
func (a verbs) addKindFlags(cmd *cobra.Command, n *apiName, f *scaffoldFlags) {
	a.addScaffoldFlags(cmd, f)
	cmd.Flags().BoolVar(&f.noGenerate, "no-generate", false, "do not generate deep copies and manifests")
	n.addFlags(cmd)
	a.completeKind(cmd, n, &f.dir)
}

// onKind determines the kind, and carries out the plan for it.
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
		Long: `Writes the Go types of a kind, a controller with tests, a sample and roles for users, and adds them to main
and to the manifests. Then generates code and manifests from the types. The project compiles and runs.

The controller is a small working example: it creates a Deployment for every object, with conditions and
events. Use --empty to leave it out. Use --from to begin with a larger starter instead, renamed to your kind:

` + starterList() + `
For a second version of a kind, only types are written. Kinds of other modules, such as Deployments, are
not supported.`,
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
				a.remark(flags, fmt.Sprintf("Note: kinds are usually written like %s; %s works as well", capitalised(name.kind), name.kind))
			}
			a.suggest(flags, "edit its "+what+", then run it: "+a.inProject(flags, "dev", "--samples"))
			return nil
		},
	}
	a.addKindFlags(cmd, &name, &flags)
	cmd.Flags().StringVar(&options.Plural, "plural", "", "resource name in URLs (default: the regular plural of the kind)")
	cmd.Flags().StringVar(&options.ShortName, "short-name", "", "short name for kubectl")
	cmd.Flags().BoolVar(&namespaced, "namespaced", true, "make the kind namespaced; false makes it cluster-scoped")
	cmd.Flags().BoolVar(&resource, "resource", true, "write the types")
	cmd.Flags().BoolVar(&controller, "controller", true, "write a controller")
	cmd.Flags().BoolVar(&options.Empty, "empty", false, "write types without fields and a controller that does nothing")
	cmd.Flags().StringVar(&options.From, "from", "", "name of the starter to begin with")
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

// inCapitals reports whether a kind seems to be in capitals by mistake. Short ones are more
// likely acronyms.
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
