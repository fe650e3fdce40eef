// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/project"
)

func busyBuilding(todo work) string {
	if todo.has(workBuild) {
		return "building"
	}
	return "reading the manifests"
}

// buildAndPrepare builds the operator and meanwhile prepares the cluster for it. If the API server refuses something,
// the build is canceled, because its result could not be used.
func (s *Session) buildAndPrepare(ctx context.Context, round *Round, todo *work) error {
	if !todo.has(workManifests | workBuild) {
		return nil // it is only restarted
	}
	building, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		aside  Round
		needed work
	)
	prepared := make(chan error, 1)
	buildsMeanwhile, readsManifests := todo.has(workBuild), todo.has(workManifests)
	go func() {
		var err error
		if readsManifests {
			needed, err = s.prepare(ctx, &aside, buildsMeanwhile)
		} else {
			err = s.applyIdentity(ctx, &aside) // an object may have been deleted
		}
		if err != nil {
			cancel()
		}
		prepared <- err
	}()
	var built Round
	var failed error
	if buildsMeanwhile {
		failed = s.build(building, &built, todo)
	}
	unprepared := <-prepared
	round.Steps = append(append(round.Steps, aside.Steps...), built.Steps...)
	*todo |= needed
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case unprepared != nil:
		return &stepError{stepApply, unprepared}
	default:
		return failed
	}
}

func (s *Session) build(ctx context.Context, round *Round, todo *work) error {
	began := time.Now()
	changed, err := s.builder.build(ctx)
	if err != nil {
		return err
	}
	*todo &^= workBuild
	text := "built the same binary"
	if changed {
		*todo |= workRestart
		text = "built"
	}
	round.Steps = append(round.Steps, Step{Name: "build", Text: text, Took: Duration(time.Since(began))})
	return nil
}

// prepare reads the manifests and applies the operator's identity. CRDs are only tried by a dry run: if the new
// operator does not compile, the old one keeps running, and would lose fields that the new CRDs lack. It returns what
// the operator needs because of the manifests.
func (s *Session) prepare(ctx context.Context, round *Round, tryCRDs bool) (needed work, err error) {
	found, err := s.readManifests(ctx)
	if err != nil {
		return 0, &manifestsError{err}
	}
	before := s.manifests
	s.manifests = found
	s.granted.Store(found.identity)
	unbound := unboundRoles(found.all)
	s.unbound.Store(&unbound)
	if userOf(before.identity) != userOf(found.identity) || !slices.Equal(before.env, found.env) || before.hostname != found.hostname || !maps.Equal(before.podFiles(), found.podFiles()) ||
		s.process.running() && len(s.process.ready.waitsForRights()) > 0 { // which it would ask for again only after a while
		needed |= workRestart
	}
	if !slices.Equal(leadingWords(argumentsIn(before.all)), leadingWords(argumentsIn(found.all))) { // the subcommand
		needed |= workFlags | workRestart
	}
	if err := s.clearWebhooks(ctx); err != nil {
		return needed, err
	}
	s.sayIdentity()
	s.sayTemplated()
	if err := s.applyIdentity(ctx, round); err != nil {
		return needed, err
	}
	if err := s.applyBelongings(ctx); err != nil || !tryCRDs {
		return needed, err
	}
	return needed, s.applier.try(ctx, s.onThisCluster(found.definitions))
}

// applyIdentity applies the service account, its roles and bindings, and prunes those that the manifests no longer
// have, including those of earlier sessions. Otherwise the operator would keep a right here that it does not have in
// production.
func (s *Session) applyIdentity(ctx context.Context, round *Round) error {
	began := time.Now()
	var objects []*unstructured.Unstructured
	if identity := s.manifests.identity; identity != nil {
		objects = slices.Concat(namespaceFor(identity.Namespace, identity.Objects), identity.Objects)
		if s.Cluster.CallsBack { // elsewhere they may belong to others, or add to the rights of people
			objects = append(objects, identity.Others...)
		}
	}
	others, err := s.applier.others(ctx)
	if err != nil {
		return err
	}
	if !s.Cluster.CallsBack {
		s.sayDeployed(others)
	}
	applied, pruned, err := s.applier.applyPart(ctx, partRights, objects, others)
	if err != nil {
		return err
	}
	if text := rightsText(len(applied), pruned); text != "" {
		round.Steps = append(round.Steps, Step{Name: stepApply, Text: text, Took: Duration(time.Since(began))})
	}
	return nil
}

// sayDeployed warns that the operator was also deployed to a cluster with real pods.
func (s *Session) sayDeployed(others map[apply.ID]string) {
	for id, by := range others {
		if id.Group == "apps" && strings.HasSuffix(by, " "+s.Project.Name) {
			s.applier.options.Note(fmt.Sprintf("%s was applied by %s: if it runs, both reconcile the same objects; to stop it, scale it to 0", id, by))
		}
	}
}

// rightsText describes what was done about the identity of the operator; empty if nothing was.
func rightsText(applied, pruned int) string {
	var parts []string
	if applied > 0 {
		parts = append(parts, "identity and roles applied")
	}
	if pruned > 0 {
		parts = append(parts, plural(pruned, "role or binding", "roles and bindings")+" pruned")
	}
	return strings.Join(parts, ", ")
}

// applyDefinitions applies the CRDs. It runs before each restart, because a CRD may have been deleted.
func (s *Session) applyDefinitions(ctx context.Context, round *Round, todo *work) error {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, servedTimeout)
	defer cancel()
	changed, _, err := s.applier.applyPart(limited, partDefinitions, s.onThisCluster(s.manifests.definitions), nil)
	if err != nil {
		return err
	}
	if err := s.applier.awaitServed(ctx, changed); err != nil {
		return err
	}
	*todo &^= workManifests
	*todo |= workWebhooks
	if len(changed) > 0 {
		text := plural(len(changed), "CRD", "CRDs") + " applied"
		round.Steps = append(round.Steps, Step{Name: stepApply, Text: text, Took: Duration(time.Since(began))})
	}
	return nil
}

// clearWebhooks deletes webhook configurations of a killed session, under any name, and deployed ones: no process
// serves them, and the API server might refuse other objects because of them.
func (s *Session) clearWebhooks(ctx context.Context) error {
	if s.cleared || !s.Cluster.CallsBack {
		return nil
	}
	err := s.applier.clear(ctx)
	if err == nil {
		err = s.applier.remove(ctx, s.manifests.webhooks)
	}
	s.cleared = err == nil // a round that was cancelled leaves it to the next
	return err
}

// sayIdentity prints the identity of the operator whenever it changes.
func (s *Session) sayIdentity() {
	acts := "the manifests give no service account of the operator any permissions, so it runs as an administrator; missing permissions do not show"
	if workload, account := project.MissingAccount(s.manifests.all); account != "" {
		acts = fmt.Sprintf("the manifests do not have ServiceAccount %s, which %s names, so the operator runs as an administrator; missing permissions do not show; "+
			"a cluster creates no pods of it until you add the ServiceAccount", account, workload)
	}
	if identity := s.manifests.identity; identity != nil {
		acts = "the operator runs as " + identity.User()
		for _, binding := range identity.Completed {
			s.sayOnce(fmt.Sprintf("%s has no namespace for its service account, so an API server refuses it; dev uses namespace %s; set one in the kustomization or manifest",
				binding, identity.Namespace))
		}
	}
	if acts != s.acts {
		s.acts = acts
		s.Screen.Say(acts)
	}
}

// sayTemplated prints that webhooks are not called because only a chart has their configurations.
func (s *Session) sayTemplated() {
	if !s.Cluster.CallsBack || len(s.manifests.webhooks) > 0 {
		return
	}
	for _, file := range s.Project.TemplatedWebhooks() {
		chart, _, _ := strings.Cut(file, "/templates/")
		s.sayOnce(fmt.Sprintf("%s has webhook configurations, but opdock does not render Helm templates: these webhooks are not called; "+
			"to use all that the chart installs, run: helm template -n NAMESPACE %s %s > deploy/%s.yaml", file, s.Project.Name, chart, s.Project.Name))
	}
}

// namespaceFor is the namespace of the operator, if its own manifests do not bring it.
func namespaceFor(name string, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	for _, object := range objects {
		if object.GetKind() == "Namespace" && object.GetName() == name {
			return nil
		}
	}
	if name == metav1.NamespaceDefault {
		return nil
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	namespace.SetName(name)
	return []*unstructured.Unstructured{namespace}
}

// manifestsError is a manifest, or a kustomization, that cannot be read.
type manifestsError struct{ err error }

func (e *manifestsError) Error() string { return e.err.Error() }
func (e *manifestsError) Unwrap() error { return e.err }

func userOf(identity *project.Identity) string {
	if identity == nil {
		return ""
	}
	return identity.User()
}

func (s *Session) readManifests(ctx context.Context) (m manifests, err error) {
	if m.definitions, err = s.Project.CRDs(ctx); err != nil {
		return m, err
	}
	all, err := s.Project.Manifests(ctx)
	if err != nil {
		return m, err
	}
	for _, object := range all {
		switch {
		case project.IsWebhookConfiguration(object):
			m.webhooks = append(m.webhooks, object)
		case project.IsCRD(object) && converts(object):
			// The manifests may make a CRD convert that does not on its own.
			if i := slices.IndexFunc(m.definitions, func(one *unstructured.Unstructured) bool { return one.GetName() == object.GetName() }); i >= 0 {
				m.definitions[i] = object
			}
		}
	}
	if len(m.webhooks) == 0 {
		hooks, err := s.Project.Webhooks(ctx)
		if err != nil {
			return m, err
		}
		m.webhooks, m.undeployed = hooks.Configurations, !hooks.Deployed
	}
	m.definitions = append(m.definitions, s.externalDefinitions(ctx)...)
	m.all, m.identity = all, project.IdentityIn(all)
	m.env = environmentIn(all, m.identity)
	m.hostname = s.hostname(m)
	return m, nil
}

// hostname returns the name of the operator's pod if the code reads the name of its host, and otherwise nothing.
func (s *Session) hostname(m manifests) string {
	c, found := containerIn(m.all, m.identity)
	if !found || !s.Project.ReadsHostname() {
		return ""
	}
	return cmp.Or(lastValue(m.env, "HOSTNAME"), hostnameOf(c.podName()))
}
