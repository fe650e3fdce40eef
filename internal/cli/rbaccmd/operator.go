// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rbaccmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/target"
)

const (
	// standInName is the account of an operator whose manifests have none.
	standInName = "operator"
	// logTail is how much of the operator's output is shown if it fails.
	logTail = 4 << 10
)

// account is whose rights the operator has; found is false if the manifests do not say, and the account is made up.
func (s *subject) account() (identity *project.Identity, found bool) {
	if s.identity != nil {
		return s.identity, true
	}
	account := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": standInName, "namespace": "default"},
	}}
	return &project.Identity{Namespace: "default", ServiceAccount: standInName, Objects: []*unstructured.Unstructured{account}}, false
}

// withRoles is an identity with these roles and bindings instead of its own. Its own roles stay without their bindings, because the
// operator may bind them to accounts that it creates.
func withRoles(identity *project.Identity, roles []*unstructured.Unstructured) *project.Identity {
	changed := *identity
	changed.Objects = slices.DeleteFunc(slices.Clone(identity.Objects), func(object *unstructured.Unstructured) bool {
		return object.GroupVersionKind().Group == rbacv1.GroupName
	})
	changed.Objects = append(changed.Objects, roles...)
	changed.Others = slices.DeleteFunc(identity.Roles(), func(other *unstructured.Unstructured) bool {
		return slices.ContainsFunc(roles, func(role *unstructured.Unstructured) bool {
			return role.GetKind() == other.GetKind() && role.GetNamespace() == other.GetNamespace() && role.GetName() == other.GetName()
		})
	})
	return &changed
}

func asObjects(typed []any) (objects []*unstructured.Unstructured, err error) {
	for _, one := range typed {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(one)
		if err != nil {
			return nil, fmt.Errorf("making a role: %w", err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: fields})
	}
	return objects, nil
}

// install brings to a cluster what an operator needs that is run by a command.
func install(ctx context.Context, admin *rest.Config, p *project.Project, identity *project.Identity) error {
	server, err := apply.Connect(admin)
	if err != nil {
		return err
	}
	definitions, err := p.CRDs(ctx)
	if err != nil {
		return err
	}
	_, err = server.Apply(ctx, slices.Concat(definitions, identity.Objects, identity.Others), apply.Options{Manager: apply.ProjectManager, Namespace: "default", MakeNamespaces: true})
	return err
}

// operatorOf is an operator that is built from a project.
type operatorOf struct {
	project   *project.Project
	main      string
	identity  *project.Identity
	arguments []string
}

// buildAndInstall builds the operator as opdock dev does, and brings to a cluster what it needs. The function that it returns
// starts it, with the settings of its manifests and with its webhooks.
func (a verbs) buildAndInstall(ctx context.Context, o rbacOptions, of operatorOf, admin *rest.Config, dir string,
) (func(context.Context, *lens.Lens, string) (launched, error), error) {
	d := a.NewDisplay(o.format != formatText)
	began := a.Now()
	operator, err := dev.NewOperator(ctx, dev.OperatorOptions{
		Project: of.project, Main: of.main, Arguments: of.arguments, Env: a.Env, StateDir: dir, Progress: func(string) {},
		Say: func(text string) { fmt.Fprintf(a.Err, "! %s\n", text) },
	}, admin)
	if err != nil {
		return nil, err
	}
	d.Done("Built "+of.main, a.Now().Sub(began))
	operator.SetIdentity(of.identity)
	if err := operator.Install(ctx, admin); err != nil {
		return nil, err
	}
	return func(ctx context.Context, proxy *lens.Lens, dir string) (launched, error) {
		started, err := operator.Launch(ctx, dev.Place{Dir: dir, Admin: admin, Lens: proxy, Line: func(string) {}})
		return launched{started}, err
	}, nil
}

// launched is an operator that was built here.
type launched struct{ *dev.Started }

// Ended implements rehearse.Process.
func (l launched) Ended() <-chan struct{} { return l.Done() }

// Err implements rehearse.Process.
func (l launched) Err() error {
	return errors.New(l.How() + ":\n  " + strings.Join(l.Tail(), "\n  "))
}

// configAs is how to reach a cluster as a user.
func configAs(cluster target.Running, user string) (*rest.Config, error) {
	kubeconfig, err := cluster.KubeconfigAs(user)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the operator: %w", err)
	}
	config.QPS = -1
	return config, nil
}

// tail keeps the end of what is written to it.
type tail struct{ text []byte }

func (t *tail) Write(data []byte) (int, error) {
	t.text = append(t.text, data...)
	t.text = t.text[max(0, len(t.text)-logTail):]
	return len(data), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.text)) }
