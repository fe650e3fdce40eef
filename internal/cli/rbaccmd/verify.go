// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rbaccmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/gocommand"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/librarylog"
	"github.com/opdock/opdock/internal/rights"
	"github.com/opdock/opdock/internal/rights/rehearse"
	"github.com/opdock/opdock/internal/target"
)

const (
	startTimeout = 2 * time.Minute
	// logTail is how much of the operator's output is shown if it fails.
	logTail = 4 << 10
)

// verified is what programs read about --verify.
type verified struct {
	Rights    int                `json:"rights"`
	Acts      []rehearse.Outcome `json:"acts"`
	Recording string             `json:"recording"`
}

// verify runs the operator with the proposed rights, and only those.
func (a verbs) verify(ctx context.Context, o rbacOptions, about *subject, report *rights.Report, command []string) error {
	if about.identity == nil {
		return noAccount("--verify")
	}
	var roles []*unstructured.Unstructured
	for _, typed := range rights.Objects(report.Proposal, a.roleName(o, about), about.identity.User()) {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		if err != nil {
			return fmt.Errorf("making a role: %w", err)
		}
		roles = append(roles, &unstructured.Unstructured{Object: fields})
	}
	outcomes, recording, err := a.rehearse(ctx, o, about, rehearsal{
		flag: "--verify", with: number(uint64(len(report.Grants)), "proposed right"), roles: roles, command: command,
	})
	if err != nil {
		return err
	}
	return a.showVerified(o, verified{Rights: len(report.Grants), Acts: outcomes, Recording: recording})
}

// record runs the operator with the rights that the project grants, and returns the recording.
func (a verbs) record(ctx context.Context, o rbacOptions, about *subject, command []string) (string, error) {
	if about.identity == nil {
		return "", noAccount("--record")
	}
	var roles []*unstructured.Unstructured
	for _, object := range about.identity.Objects {
		if object.GroupVersionKind().Group == rbacv1.GroupName {
			roles = append(roles, object)
		}
	}
	_, recording, err := a.rehearse(ctx, o, about, rehearsal{flag: "--record", with: "the rights that the project grants", roles: roles, command: command})
	return recording, err
}

func noAccount(flag string) error {
	return hint.With(fmt.Errorf("%s needs the service account of the operator, and the manifests have none", flag),
		"add a ServiceAccount and the operator's Deployment to the manifests", "or record it as an administrator: opdock trace --as admin -- COMMAND")
}

// rehearsal is a run of the operator with certain roles.
type rehearsal struct {
	flag, with string
	roles      []*unstructured.Unstructured
	command    []string
}

// rehearse runs the operator and its samples on a cluster of its own, and returns the recording of it.
func (a verbs) rehearse(ctx context.Context, o rbacOptions, about *subject, r rehearsal) (outcomes []rehearse.Outcome, recording string, err error) {
	samples, err := about.project.Samples(ctx)
	if err != nil {
		return nil, "", err
	}
	if len(samples) == 0 {
		return nil, "", hint.With(errors.New(r.flag+" needs samples, and the project has none"), "add objects of its kinds to config/samples")
	}
	dir, err := os.MkdirTemp("", "opdock-rbac-")
	if err != nil {
		return nil, "", fmt.Errorf("creating a directory for the operator: %w", err)
	}
	defer os.RemoveAll(dir)
	command, err := a.operator(ctx, o, about, r.command, dir)
	if err != nil {
		return nil, "", err
	}
	librarylog.Discard()
	up := cmdutil.StartOptions{Timeout: startTimeout, Foreground: true, Quiet: o.format != formatText}
	if up.Binary, err = a.ControlPlaneBinary(ctx, false); err != nil {
		return nil, "", err
	}
	cluster, err := a.Start(ctx, up, "Starting a private cluster")
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	admin, operator, err := a.prepare(ctx, cluster, about, r.roles)
	if err != nil {
		return nil, "", err
	}
	objects, err := client.New(admin, client.Options{})
	if err != nil {
		return nil, "", fmt.Errorf("connecting to the cluster: %w", err)
	}
	// Recordings are sorted by their names when the oldest are removed.
	name := a.Now().UTC().Format("20060102T150405.000") + strings.TrimPrefix(r.flag, "-") + ".jsonl"
	recording = filepath.Join(a.DevStateDir(a.ClusterNameFor(about.project)), recordingsDir, name)
	log := &tail{}
	d := a.NewDisplay(o.format != formatText)
	d.Title("Running %s with %s", about.project.Name, r.with)
	outcomes, err = rehearse.Run(ctx, rehearse.Options{
		Upstream: operator, Namespace: about.identity.Namespace, Command: command, Dir: about.project.Dir, Env: a.Env, Log: log, Recording: recording,
		Header: lens.Header{Project: about.project.Name, Command: command, Identity: about.identity.User()}, Quiet: o.quiet, Patience: o.timeout,
		Acts: rehearse.Samples(objects, samples, "default"), Done: func(outcome rehearse.Outcome) { d.Done(describe(outcome), outcome.Took) },
	})
	var ended *rehearse.EndedError
	if errors.As(err, &ended) {
		err = fmt.Errorf("%w\n%s", err, log.String())
	}
	return outcomes, recording, err
}

func describe(outcome rehearse.Outcome) string {
	text := fmt.Sprintf("%s: %s", outcome.Act, number(uint64(outcome.Requests), "request")) //nolint:gosec // a count
	if len(outcome.Refused) > 0 {
		text += fmt.Sprintf(", %d refused", len(outcome.Refused))
	}
	if outcome.Busy {
		text += ", still busy"
	}
	return text
}

func (a verbs) showVerified(o rbacOptions, result verified) error {
	refused := map[string]int{}
	var order []string
	for _, act := range result.Acts {
		for _, one := range act.Refused {
			r := one.Resource
			resource := r.Resource
			if r.Subresource != "" {
				resource += "/" + r.Subresource
			}
			text := fmt.Sprintf("%s %s during %q: %s", one.Verb, (rights.Right{Group: r.Group, Resource: resource}).Object(), act.Act, one.Message)
			if refused[text]++; refused[text] == 1 {
				order = append(order, text)
			}
		}
	}
	if o.format == formatJSON {
		if err := a.PrintJSON(result); err != nil {
			return err
		}
	} else {
		for _, text := range order {
			fmt.Fprintf(a.Out, "refused: %s (%d times)\n", text, refused[text])
		}
		if len(order) == 0 {
			fmt.Fprintln(a.Out, "No request was refused.")
		}
		fmt.Fprintf(a.Err, "Recording: %s\n", result.Recording)
	}
	if len(order) > 0 {
		return &cmdutil.SaidError{Reason: "refused"}
	}
	return nil
}

// operator is the command that runs the operator: the given one, or else the operator's own binary with the given flags.
func (a verbs) operator(ctx context.Context, o rbacOptions, about *subject, command []string, dir string) ([]string, error) {
	if len(command) > 0 && !strings.HasPrefix(command[0], "-") {
		return command, nil
	}
	main, err := about.project.Main(o.main)
	if err != nil {
		return nil, err
	}
	d := a.NewDisplay(o.format != formatText)
	began := a.Now()
	binary := filepath.Join(dir, "operator")
	build := gocommand.Command(ctx, about.project.Dir, a.Env, "build", "-buildvcs=false", "-o", binary, main)
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the operator: %w\n%s", err, bytes.TrimSpace(output))
	}
	d.Done("Built "+main, a.Now().Sub(began))
	return append([]string{binary}, command...), nil
}

// prepare brings to a cluster what the operator needs, with certain roles and bindings.
func (a verbs) prepare(ctx context.Context, cluster target.Running, about *subject, roles []*unstructured.Unstructured) (admin, operator *rest.Config, err error) {
	if admin, _, err = a.Targets().LoadKubeconfig(cluster.Kubeconfig(), ""); err != nil {
		return nil, nil, err
	}
	server, err := apply.Connect(admin)
	if err != nil {
		return nil, nil, err
	}
	objects, err := about.project.CRDs(ctx)
	if err != nil {
		return nil, nil, err
	}
	objects = slices.Clone(objects)
	for _, object := range about.identity.Objects {
		if kind := object.GetKind(); kind == "Namespace" || kind == "ServiceAccount" {
			objects = append(objects, object)
		}
	}
	objects = append(objects, roles...)
	if _, err := server.Apply(ctx, objects, apply.Options{Manager: apply.ProjectManager, Namespace: "default", MakeNamespaces: true}); err != nil {
		return nil, nil, err
	}
	kubeconfig, err := cluster.KubeconfigAs(about.identity.User())
	if err != nil {
		return nil, nil, err
	}
	if operator, err = clientcmd.RESTConfigFromKubeConfig(kubeconfig); err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig of the operator: %w", err)
	}
	operator.QPS = -1
	return admin, operator, nil
}

// tail keeps the end of what is written to it.
type tail struct{ text []byte }

func (t *tail) Write(data []byte) (int, error) {
	t.text = append(t.text, data...)
	t.text = t.text[max(0, len(t.text)-logTail):]
	return len(data), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.text)) }
