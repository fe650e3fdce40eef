// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rbaccmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/rights"
	"github.com/opdock/opdock/internal/rights/granting"
	"github.com/opdock/opdock/internal/rights/rehearse"
)

type rbacOptions struct {
	dir            string
	against        string
	format         string
	roleName       string
	last           int
	includeRefused bool
	explain        bool
	check          bool
	write          bool

	record  bool
	verify  bool
	main    string
	quiet   time.Duration
	timeout time.Duration
}

const (
	formatText    = "text"
	formatMarkers = "markers"
	formatYAML    = "yaml"
	formatJSON    = "json"
)

var (
	formats  = []string{formatText, formatMarkers, formatYAML, formatJSON}
	againsts = []string{granting.Auto, granting.Role, granting.Markers, granting.Chart, granting.Nothing}
)

// NewRBAC returns the verb rbac.
func NewRBAC(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var o rbacOptions
	cmd := &cobra.Command{
		Use:   "rbac [FILE]... [FLAG]... [-- ARGUMENT...]",
		Short: "Derive the least rights of an operator from what it did",
		Long: `Reads recordings of an operator, made by "opdock trace", "opdock dev" or "opdock prove", and compares the
rights that it used with the rights that its project grants: missing, unused in these recordings, and broader
than needed. Each finding shows its evidence: how many requests, when the last one was sent, and in which reconcile.

FILE is a recording. Without FILE, the command reads the latest recordings of the project, except those of
other programs that "opdock trace" ran: kubectl, for example, or a program without the operator's service
account. What an operator did not do while it was recorded looks unused: record creation, change and deletion
of all your samples.

The granted rights are those of the roles that the manifests bind to the operator's service account, or else
those of a Helm chart or of the +kubebuilder:rbac markers. Select with --against.

Some rights are needed although no request asks for them, and the command adds them with the reason. Examples
are update on OWNER/finalizers, and list for an informer that only watched. Rights of a manager that
recordings seldom show, such as leader election, stay if they are granted. A right whose requests were all
refused is reported, and proposed only with --include-refused.

With -o yaml, the command prints roles and bindings: a ClusterRole, and Roles for what happens only in known
namespaces. With -o markers, it prints markers. With --write, it edits the markers in the source code and
generates the role again, or changes nothing if that fails.

With --record, the command makes a recording first: it starts a private cluster, runs the operator with the
rights that the project grants, and creates, changes and deletes the samples. With --verify, it does the same
with the proposed rights and nothing else; the exit code is 1 if a request lacked a right, or if the operator did
nothing with the samples. CRDs of other kinds that the operator needs are installed from the modules that it
imports. Arguments after -- are flags of the operator, or a command that runs it.`,
		Example: `  opdock rbac                              # compare the role with the recordings of this project
  opdock rbac --record                     # run the operator and its samples first
  opdock rbac recording.jsonl --explain    # show each right with its reason and evidence
  opdock rbac -o yaml > role.yaml
  opdock rbac --write                      # edit the markers and generate the role
  opdock rbac --verify -- --leader-elect   # run the samples with the proposed rights
  opdock rbac --check --against chart      # for CI: exits with code 1 if rights are missing or not needed`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, command := args, []string(nil)
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				files, command = args[:dash], args[dash:]
			}
			if err := o.validate(cmd, command); err != nil {
				return err
			}
			err := a.rbac(cmd.Context(), o, files, command)
			if err != nil && cmd.Context().Err() != nil {
				return cmdutil.Interrupted(err)
			}
			return err
		},
	}
	flags := cmd.Flags()
	a.AddDirFlag(cmd, &o.dir)
	flags.StringVar(&o.against, "against", granting.Auto, "what to compare with: "+strings.Join(againsts, ", "))
	flags.StringVarP(&o.format, "output", "o", formatText, "output format: "+strings.Join(formats, ", "))
	flags.StringVar(&o.roleName, "role-name", "", "name of the roles that -o yaml prints (default: the name of the granted role)")
	flags.IntVar(&o.last, "last", 20, "number of recordings of the project to read, the latest first")
	flags.BoolVar(&o.includeRefused, "include-refused", false, "propose rights although all requests for them were refused")
	flags.BoolVar(&o.explain, "explain", false, "show the reason and the evidence of each right that is needed")
	flags.BoolVar(&o.check, "check", false, "exit with code 1 if a right is missing, refused, unused or broader than needed")
	flags.BoolVar(&o.write, "write", false, "edit the +kubebuilder:rbac markers in place, and generate the role")
	flags.BoolVar(&o.record, "record", false, "run the operator and its samples with the granted rights first, and record it")
	flags.BoolVar(&o.verify, "verify", false, "run the operator and its samples with the proposed rights, and report refused requests")
	flags.StringVar(&o.main, "main", "", "with --record or --verify: main package of the operator (default: found in the project)")
	flags.DurationVar(&o.quiet, "quiet-period", rehearse.DefaultQuiet, "with --record or --verify: a step ends when the operator is idle this long")
	flags.DurationVar(&o.timeout, "timeout", rehearse.DefaultPatience, "with --record or --verify: how long a step may take")
	a.Complete(cmd, "against", func() []string { return againsts })
	a.Complete(cmd, "output", func() []string { return formats })
	return cmd
}

func (o *rbacOptions) validate(cmd *cobra.Command, command []string) error {
	var message string
	switch {
	case !slices.Contains(formats, o.format):
		message = fmt.Sprintf("--output must be %s, not %q", strings.Join(formats, ", "), o.format)
	case !slices.Contains(againsts, o.against):
		message = fmt.Sprintf("--against must be %s, not %q", strings.Join(againsts, ", "), o.against)
	case o.last < 1:
		message = fmt.Sprintf("--last must be at least 1, not %d", o.last)
	case o.verify && (o.write || o.check):
		message = "--verify cannot be used with --write or --check"
	case o.verify && (o.format == formatMarkers || o.format == formatYAML):
		message = "--verify supports only -o text and -o json"
	case (o.verify || o.record) && (o.quiet <= 0 || o.timeout <= o.quiet):
		message = "--quiet-period must be more than 0, and less than --timeout"
	case !o.verify && !o.record && len(command) > 0:
		message = "arguments after -- are for the operator that --record or --verify runs"
	case o.check && o.against == granting.Nothing:
		message = "--check compares, and cannot be used with --against none"
	case o.write && o.check:
		message = "--write and --check cannot be used together"
	case o.write && (o.format == formatMarkers || o.format == formatYAML):
		message = "--write supports only -o text and -o json"
	case o.write && (o.against == granting.Chart || o.against == granting.Nothing):
		message = "--write edits markers and cannot be used with --against chart or none"
	}
	if message == "" {
		return nil
	}
	return &cmdutil.UsageError{Message: message, Hints: []string{cmdutil.SeeHelp(cmd)}}
}

// subject is the operator that a report is about.
type subject struct {
	// project is nil if there is none: recordings are enough to say what is needed.
	project  *project.Project
	identity *project.Identity
	// markers are those of the operator, and others are for roles that it does not have.
	markers, others []rights.Marker

	granted rights.Granted
	// roles are the rules of the roles that the manifests bind, whatever is compared.
	roles   rights.Granted
	options rights.Options
}

func (a verbs) rbac(ctx context.Context, o rbacOptions, files, command []string) error {
	var notes []string
	found, err := a.FindProject(o.dir, &notes)
	var usage *cmdutil.UsageError
	if err != nil && (len(files) == 0 || o.write || o.verify || o.record || !errors.As(err, &usage)) {
		return err
	}
	about, err := a.readSubject(ctx, found, o)
	if err != nil {
		return err
	}
	if o.record {
		if len(files) > 0 { // a name that is wrong must not cost a run
			if _, _, err := a.recordings(ctx, about, o, files); err != nil {
				return err
			}
		}
		made, result, err := a.record(ctx, o, about, command)
		if err != nil {
			return err
		}
		incomplete, err := judgeRecorded(o, &result)
		if err != nil {
			return err
		}
		notes = append(notes, incomplete...)
		if len(files) > 0 {
			files = append(files, made) // otherwise it is one of the project's
		}
	}
	recordings, leftOut, err := a.recordings(ctx, about, o, files)
	if err != nil {
		return err
	}
	notes = append(append(notes, leftOut...), foreign(recordings, found)...)
	observed := rights.Merge(recordings)
	report := rights.Compare(observed, about.granted, about.options)
	report.AttachMarkers(about.markers)
	report.Notes = append(report.Notes, notes...)
	switch {
	case o.write:
		return a.write(ctx, o, about, report)
	case o.verify:
		return a.verify(ctx, o, about, report, command)
	}
	if err := a.print(o, about, report); err != nil {
		return err
	}
	if o.check && report.Granted == "" {
		return hint.With(errors.New("--check found no rights to compare with"), append(about.granted.Notes, "run it in the folder of the operator's project")...)
	}
	if o.check && report.Count(rights.Missing, rights.Refused, rights.Unused, rights.Broader) > 0 {
		return &cmdutil.SaidError{Reason: "rights differ"}
	}
	return nil
}

// print shows a report. What is not part of the result goes to standard error.
func (a verbs) print(o rbacOptions, about *subject, report *rights.Report) error {
	switch o.format {
	case formatJSON:
		return a.PrintJSON(report)
	case formatYAML:
		a.printNotes(report)
		return a.printObjects(rights.Objects(report.Proposal, a.roleName(o, about), about.user(report)))
	case formatMarkers:
		a.printNotes(report)
		for _, line := range rights.MarkerLines(rights.Propose(about.withoutOthers(report.Grants))) {
			fmt.Fprintln(a.Out, "// "+line)
		}
		return nil
	}
	s := &show{out: a.Out, now: a.Now(), explain: o.explain}
	name := "The program"
	if about.project != nil {
		name = about.project.Name
	}
	s.report(name, report)
	return nil
}

func (a verbs) printNotes(report *rights.Report) {
	for _, note := range report.Notes {
		fmt.Fprintf(a.Err, "! %s\n", note)
	}
}

func (a verbs) printObjects(objects []any) error {
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("printing a role: %w", err)
		}
		fmt.Fprintf(a.Out, "---\n%s", text)
	}
	return nil
}

// user is the service account that roles are bound to.
func (s *subject) user(report *rights.Report) string {
	if s.identity != nil {
		return s.identity.User()
	}
	return report.Identity
}

// roleName is the name of the ClusterRole that the project grants most with.
func (a verbs) roleName(o rbacOptions, about *subject) string {
	name, most := "", 0
	if about.identity != nil {
		for _, object := range about.identity.Objects {
			rules, _, _ := unstructured.NestedSlice(object.Object, "rules")
			if object.GetKind() == "ClusterRole" && len(rules) > most {
				name, most = object.GetName(), len(rules)
			}
		}
	}
	return cmp.Or(o.roleName, name, "manager-role")
}

// withoutOthers leaves out what roles grant that are not generated from markers.
func (s *subject) withoutOthers(grants []rights.Grant) []rights.Grant {
	if len(s.markers) == 0 {
		return grants
	}
	return rights.NotIn(grants, rights.Elsewhere(s.roles.Rules, s.markers))
}
