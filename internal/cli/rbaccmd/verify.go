// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rbaccmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/librarylog"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/rights"
	"github.com/opdock/opdock/internal/rights/rehearse"
	"github.com/opdock/opdock/internal/scratch"
)

const startTimeout = 2 * time.Minute

// verified is what programs read about --verify.
type verified struct {
	Rights int                `json:"rights"`
	Acts   []rehearse.Outcome `json:"acts"`
	Idle   rehearse.Idle      `json:"idle,omitzero"`
	// Strangers is how many requests the lens refused because they lacked the credential of the operator.
	Strangers uint64 `json:"strangers,omitempty"`
	Recording string `json:"recording"`
}

// verify runs the operator with the proposed rights, and only those.
func (a verbs) verify(ctx context.Context, o rbacOptions, about *subject, report *rights.Report, command []string) error {
	identity, _ := about.account()
	roles, err := asObjects(rights.Objects(report.Proposal, a.roleName(o, about), identity.User()))
	if err != nil {
		return err
	}
	result, recording, err := a.rehearse(ctx, o, about, rehearsal{
		flag: "--verify", with: number(uint64(report.Rights()), "proposed right"), identity: withRoles(identity, roles), command: command,
		// Some distributions enforce it, and nothing else tries the rights that owner references need.
		admission: []string{"OwnerReferencesPermissionEnforcement"},
	})
	if err != nil {
		return err
	}
	return a.showVerified(o, verified{Rights: report.Rights(), Acts: result.Acts, Idle: result.Idle, Strangers: result.Strangers, Recording: recording})
}

// record runs the operator with the rights that the project grants, and returns the recording and what it does not show.
func (a verbs) record(ctx context.Context, o rbacOptions, about *subject, command []string) (recording string, result rehearse.Result, err error) {
	identity, found := about.account()
	with := "the rights that the project grants"
	if !found {
		all := rbacv1.ClusterRoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"}, ObjectMeta: metav1.ObjectMeta{Name: standInName},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: identity.ServiceAccount, Namespace: identity.Namespace}},
		}
		roles, err := asObjects([]any{&all})
		if err != nil {
			return "", result, err
		}
		identity, with = withRoles(identity, roles), "all rights, because its manifests have no service account"
	}
	result, recording, err = a.rehearse(ctx, o, about, rehearsal{flag: "--record", with: with, identity: identity, command: command})
	return recording, result, err
}

// rehearsal is a run of the operator with certain roles.
type rehearsal struct {
	flag, with string
	identity   *project.Identity
	command    []string
	admission  []string // plugins of the API server
}

// rehearse runs the operator and its samples on a cluster of its own, and returns the recording of it.
func (a verbs) rehearse(ctx context.Context, o rbacOptions, about *subject, r rehearsal) (result rehearse.Result, recording string, err error) {
	samples, err := about.project.Samples(ctx)
	if err != nil {
		return result, "", err
	}
	if len(samples) == 0 {
		return result, "", hint.With(errors.New(r.flag+" needs samples, and the project has none"), "add objects of its kinds to config/samples")
	}
	isCommand := len(r.command) > 0 && !strings.HasPrefix(r.command[0], "-")
	main := ""
	if !isCommand {
		if main, err = about.project.Main(o.main); err != nil {
			return result, "", err
		}
	}
	dir, remove, err := scratch.Make("opdock-rbac-")
	if err != nil {
		return result, "", fmt.Errorf("creating a directory for the operator: %w", err)
	}
	defer remove()
	librarylog.Discard()
	up := cmdutil.StartOptions{Timeout: startTimeout, Foreground: true, Quiet: o.format != formatText}
	if up.Binary, err = a.ControlPlaneBinary(ctx, false); err != nil {
		return result, "", err
	}
	up.AdmissionPlugins = r.admission
	cluster, err := a.Start(ctx, up, "Starting a private cluster")
	if err != nil {
		return result, "", err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	admin, _, err := a.Targets().LoadKubeconfig(cluster.Kubeconfig(), "")
	if err != nil {
		return result, "", err
	}
	run := rehearse.Options{
		Namespace: r.identity.Namespace, Dir: about.project.Dir, Env: a.Env, Quiet: o.quiet, Patience: o.timeout,
		Header: lens.Header{Project: about.project.Name, Command: r.command, Identity: r.identity.User()},
	}
	log := &tail{}
	watched := func() []string { return dev.WatchedBy(a.Env) }
	if isCommand {
		run.Command, run.Log = r.command, log
		err = install(ctx, admin, about.project, r.identity)
	} else {
		var start func(context.Context, *lens.Lens, string) (launched, error)
		start, err = a.buildAndInstall(ctx, o, operatorOf{about.project, main, r.identity, r.command}, admin, dir)
		run.Start = func(ctx context.Context, proxy *lens.Lens, dir string) (rehearse.Process, error) {
			operator, err := start(ctx, proxy, dir)
			if err != nil {
				return nil, err
			}
			watched = operator.Watches
			return operator, nil
		}
	}
	if err != nil {
		return result, "", err
	}
	if run.Upstream, err = configAs(cluster, r.identity.User()); err != nil {
		return result, "", err
	}
	objects, err := client.New(admin, client.Options{})
	if err != nil {
		return result, "", fmt.Errorf("connecting to the cluster: %w", err)
	}
	granted, err := rights.FromObjects(r.identity.Objects)
	if err != nil {
		return result, "", err
	}
	if err := rehearse.AwaitRights(ctx, objects, r.identity.User(), granted.Rules); err != nil {
		return result, "", err
	}
	if err := a.RememberProject(a.ClusterNameFor(about.project), about.project); err != nil {
		return result, "", err
	}
	recordings := filepath.Join(a.DevStateDir(a.ClusterNameFor(about.project)), recordingsDir)
	run.Recording = lens.RecordingPath(recordings, a.Now(), strings.TrimPrefix(r.flag, "-"))
	if err := lens.RemoveOldest(run.Recording, run.Header, lens.KeptRecordings); err != nil {
		return result, "", err
	}
	d := a.NewDisplay(o.format != formatText)
	d.Title("Running %s with %s", about.project.Name, r.with)
	run.Acts, run.Subjects = rehearse.Samples(objects, samples, func() string { return a.sampleNamespace(watched()) }, func(text string) { fmt.Fprintf(a.Err, "! %s\n", text) })
	run.Done = func(outcome rehearse.Outcome) { d.Done(describe(outcome), outcome.Took) }
	result, err = rehearse.Run(ctx, run)
	var ended *rehearse.EndedError
	if errors.As(err, &ended) && run.Start == nil {
		err = fmt.Errorf("%w\n%s", err, log.String())
	}
	return result, run.Recording, err
}

// sampleNamespace returns the namespace of samples that set none: default, or one that the operator watches.
func (a verbs) sampleNamespace(watched []string) string {
	const usual = "default"
	if len(watched) == 0 || slices.Contains(watched, usual) {
		return usual
	}
	fmt.Fprintf(a.Err, "! the operator watches only %s; samples that name no namespace go to %s\n", strings.Join(watched, ", "), watched[0])
	return watched[0]
}

func describe(outcome rehearse.Outcome) string {
	text := fmt.Sprintf("%s: %s", outcome.Act, number(uint64(outcome.Requests), "request")) //nolint:gosec // a count
	if len(outcome.Refused) > 0 {
		text += fmt.Sprintf(", %d refused", len(outcome.Refused))
	}
	if len(outcome.Denied) > 0 {
		text += fmt.Sprintf(", %d refused for another reason than the rights of the operator", len(outcome.Denied))
	}
	if outcome.Busy {
		text += ", still busy"
	}
	return text
}

func (a verbs) showVerified(o rbacOptions, result verified) error {
	refused := gathered(result.Acts, func(act *rehearse.Outcome) []rehearse.Refusal { return act.Refused })
	denied := gathered(result.Acts, func(act *rehearse.Outcome) []rehearse.Refusal { return act.Denied })
	if o.format == formatJSON {
		if err := a.PrintJSON(result); err != nil {
			return err
		}
	} else {
		for _, text := range refused {
			fmt.Fprintf(a.Out, "refused: %s\n", text)
		}
		if len(refused) == 0 && result.Strangers == 0 && !result.Idle.Unproven() {
			reason := ""
			if len(denied) > 0 {
				reason = " for lack of a right of the operator"
			}
			fmt.Fprintf(a.Out, "No request was refused%s.\n", reason)
			if text := result.Idle.Sentence(); text != "" {
				fmt.Fprintf(a.Err, "! %s: the rights for that were not tried\n", text)
			}
		}
		for _, text := range denied {
			fmt.Fprintf(a.Err, "! refused, but not for lack of a right of the operator: %s\n", text)
		}
		fmt.Fprintf(a.Err, "Recording: %s\n", result.Recording)
	}
	if len(refused) > 0 {
		return &cmdutil.SaidError{Reason: "refused"}
	}
	if result.Strangers > 0 {
		return hint.With(errors.New("--verify proves nothing: "+ofStrangers(result.Strangers)), sameConfiguration)
	}
	if result.Idle.Unproven() {
		return didNothing("--verify proves nothing", &result.Idle)
	}
	return nil
}

// gathered describes refusals, each once and with how often it was seen.
func gathered(acts []rehearse.Outcome, of func(*rehearse.Outcome) []rehearse.Refusal) (texts []string) {
	count := map[string]int{}
	for i := range acts {
		for _, one := range of(&acts[i]) {
			r := one.Resource
			resource := r.Resource
			if r.Subresource != "" {
				resource += "/" + r.Subresource
			}
			text := fmt.Sprintf("%s %s during %q: %s", one.Verb, (rights.Right{Group: r.Group, Resource: resource}).Object(), acts[i].Act, one.Message)
			if count[text]++; count[text] == 1 {
				texts = append(texts, text)
			}
		}
	}
	for i, text := range texts {
		texts[i] = fmt.Sprintf("%s (%d times)", text, count[text])
	}
	return texts
}

// judgeRecorded returns a note about a recording that shows too little, or an error if that would remove markers.
func judgeRecorded(o rbacOptions, result *rehearse.Result) (notes []string, err error) {
	if result.Strangers > 0 {
		if o.write {
			return nil, hint.With(errors.New("the recording does not show which rights are needed, and no marker was changed: "+ofStrangers(result.Strangers)), sameConfiguration)
		}
		notes = append(notes, "rights may be missing in this recording: "+ofStrangers(result.Strangers))
	}
	idle := &result.Idle
	text := idle.Sentence()
	switch {
	case text == "":
		return notes, nil
	case o.write && idle.Unproven():
		return nil, didNothing("the recording does not show which rights are needed, and no marker was changed", idle)
	}
	return append(notes, fmt.Sprintf("rights may be missing in this recording: %s; %s", text, advice(idle))), nil
}

// ofStrangers says what is missing because requests lacked the credential of the operator.
func ofStrangers(requests uint64) string {
	return fmt.Sprintf("the operator sent %s without the credential in its kubeconfig, answered with 401 Unauthorized", number(requests, "request"))
}

const sameConfiguration = "let all clients of the operator use the same configuration"

// didNothing is the error for an operator that did not do its work, so its requests do not show which rights it needs.
func didNothing(what string, idle *rehearse.Idle) error {
	return hint.With(fmt.Errorf("%s: %s", what, idle.Sentence()), advice(idle))
}

// advice says what to do about an operator that did not do its work.
func advice(idle *rehearse.Idle) string {
	if len(idle.Lacking) > 0 {
		return "neither the project nor the modules that it imports have the CRD of the missing kind: add the CRD to a folder of the project, and try again"
	}
	return `run the operator and its samples with "opdock dev" to see why`
}
