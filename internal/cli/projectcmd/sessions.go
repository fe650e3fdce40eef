// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/dev"
)

// set is the inventory of the project. Both deploy and install write it.
func (r *projectRun) set(part string) *apply.Set {
	return &apply.Set{
		Project: r.project.Name, Verb: apply.VerbDeploy, Part: part, Namespace: apply.InventoryNamespace(r.target.Ours, r.Namespace),
	}
}

// findSessions finds out which sessions of opdock dev run on the cluster.
func (r *projectRun) findSessions(ctx context.Context) error {
	inventories, err := r.server.Inventories(ctx, r.Namespace)
	if err != nil {
		return err
	}
	for _, one := range inventories {
		if one.Verb != apply.VerbDev || one.Session == "" {
			continue
		}
		// A killed session stays in the inventory. On this machine, its process can be checked.
		if one.Elsewhere() || dev.Busy(r.DevStateDirOn(r.target, one.Project)) {
			r.sessions = append(r.sessions, one)
		}
	}
	return nil
}

func sessionTitle(one *apply.Inventory) string {
	return fmt.Sprintf("opdock dev of %s (%s)", one.Project, one.Session)
}

// shared are the objects that the sessions use.
func (r *projectRun) shared() map[apply.ID]string {
	shared := map[apply.ID]string{}
	for _, one := range r.sessions {
		for _, member := range one.Members() {
			shared[member.ID] = sessionTitle(one)
		}
	}
	return shared
}

// unshared returns the objects that no session uses.
func (r *projectRun) unshared(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	shared := r.shared()
	return slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool { return shared[apply.IDOf(object)] != "" })
}

// noteSessions adds notes about sessions that use the objects to be applied.
func (r *projectRun) noteSessions(manifests []*unstructured.Unstructured) {
	for _, one := range r.sessions {
		members := one.Members()
		if slices.ContainsFunc(manifests, func(object *unstructured.Unstructured) bool {
			return slices.ContainsFunc(members, func(member apply.Member) bool { return member.ID == apply.IDOf(object) })
		}) {
			r.note("%s is running on %s: its webhooks and conversion keep leading to that session", sessionTitle(one), r.target.Title)
		}
	}
}

// noteKept adds notes about objects that were kept because a session uses them.
func (r *projectRun) noteKept(outcomes []apply.Outcome) {
	kept := 0
	for _, one := range outcomes {
		if one.Action == apply.Kept {
			kept++
		}
	}
	if kept == 0 {
		return
	}
	for _, one := range r.sessions {
		r.note("kept %s, because %s is running; to delete the rest, stop it and run this command again", objects(kept), sessionTitle(one))
	}
}

func objects(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}

// noteElsewhere adds a note if the project was deployed with another namespace.
func (r *projectRun) noteElsewhere(ctx context.Context) {
	inventories, err := r.server.Inventories(ctx, r.Namespace)
	if err != nil {
		return // it is only a note
	}
	for _, one := range inventories {
		if one.Verb == apply.VerbDeploy && one.Project == r.project.Name && one.Namespace != r.set("").Namespace {
			r.note("%s was deployed with --namespace %s; to remove that: %s undeploy --namespace %s", r.project.Name, one.Namespace, cmdutil.ShellQuote(r.Program), one.Namespace)
		}
	}
}
