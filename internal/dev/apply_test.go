// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/testenv"
)

// applierOf applies to a fake cluster.
func applierOf(server client.WithWatch) *applier {
	return &applier{
		engine: apply.New(server, nil), server: server, options: apply.Options{Manager: fieldOwner}, tried: map[string]digest{}, sampled: map[string]digest{},
	}
}

// clusterSession is a session on the cluster that tests share, as far as it applies something. Each has a memory of its own
// only on the cluster, like a restarted one.
func clusterSession(t *testing.T, name string) (*Session, *said) {
	t.Helper()
	testenv.ControlPlane(t)
	screen := &said{}
	set := apply.Set{Project: name, Verb: apply.VerbDev, Namespace: apply.InventoryNamespace(true, "")}
	a, err := newApplier(rest.CopyConfig(clustertest.Shared(t).Config()), set)
	if err != nil {
		t.Fatal(err)
	}
	a.options.Namespace, a.options.MakeNamespaces, a.options.Note = "default", true, screen.Say
	made, err := makeCertificates(t.TempDir(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &Session{Options: Options{Screen: screen, Cluster: Cluster{CallsBack: true}}, applier: a, certificates: made, ports: ports{webhooks: 7000}}, screen
}

// cleared removes all that sessions of a name have applied when the test ends.
func cleared(t *testing.T, s *Session) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		inventory, err := s.applier.engine.Inventory(ctx, &s.applier.set)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.applier.removePart(ctx, apply.Objects(inventory.Members())); err != nil {
			t.Error(err)
		}
	})
}

func (s *Session) exists(t *testing.T, object *unstructured.Unstructured) bool {
	t.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	err := s.applier.server.Get(t.Context(), client.ObjectKeyFromObject(object), live)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// identityOf is an operator with these roles and bindings.
func identityOf(objects ...*unstructured.Unstructured) *project.Identity {
	return &project.Identity{Namespace: "default", ServiceAccount: "captain", Objects: objects}
}

// A binding that is taken out of the manifests between two sessions is pruned by the second, and one that was deleted
// comes back with the next round.
func TestRightsOfEarlierSessions(t *testing.T) {
	role := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: session-captain}, rules: []}")
	binding := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: session-captain}, "+
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: session-captain}, subjects: [{kind: ServiceAccount, name: captain, namespace: default}]}")
	first, _ := clusterSession(t, "rights")
	cleared(t, first)
	first.manifests.identity = identityOf(role, binding)
	var round Round
	if err := first.applyIdentity(t.Context(), &round); err != nil {
		t.Fatal(err)
	}
	if !first.exists(t, role) || !first.exists(t, binding) || len(round.Steps) != 1 {
		t.Fatalf("they were not applied: %+v", round)
	}
	if err := first.applier.server.Delete(t.Context(), binding.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	round = Round{}
	if err := first.applyIdentity(t.Context(), &round); err != nil {
		t.Fatal(err)
	}
	if !first.exists(t, binding) || len(round.Steps) != 1 {
		t.Errorf("a deleted object was not restored: %+v", round)
	}

	second, _ := clusterSession(t, "rights")
	second.manifests.identity = identityOf(role)
	round = Round{}
	if err := second.applyIdentity(t.Context(), &round); err != nil {
		t.Fatal(err)
	}
	if second.exists(t, binding) || !second.exists(t, role) {
		t.Error("the binding has survived, or the role has not")
	}
	if len(round.Steps) != 1 || round.Steps[0].Text != "1 role or binding pruned" {
		t.Errorf("it did %+v", round.Steps)
	}
	second.manifests.identity = nil
	if err := second.applyIdentity(t.Context(), &Round{}); err != nil || second.exists(t, role) {
		t.Errorf("a project without an identity keeps its role: %v", err)
	}

	// The same holds for roles that the operator may bind to others.
	second.manifests.identity = identityOf()
	second.manifests.identity.Others = []*unstructured.Unstructured{role}
	callsBack := second.Cluster.CallsBack
	second.Cluster.CallsBack = false
	if err := second.applyIdentity(t.Context(), &Round{}); err != nil || second.exists(t, role) {
		t.Errorf("a role for others was applied to a cluster of others: %v", err)
	}
	second.Cluster.CallsBack = true
	defer func() { second.Cluster.CallsBack = callsBack }()
	if err := second.applyIdentity(t.Context(), &Round{}); err != nil || !second.exists(t, role) {
		t.Errorf("a role for others was not applied: %v", err)
	}
	second.manifests.identity.Others = nil
	if err := second.applyIdentity(t.Context(), &Round{}); err != nil || second.exists(t, role) {
		t.Errorf("a role for others has survived: %v", err)
	}
}

// What was deployed is not pruned by a session, which says so.
func TestDeployedRightsStay(t *testing.T) {
	role := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: session-deployed}, rules: []}")
	s, screen := clusterSession(t, "deployed")
	cleared(t, s)
	deployed := apply.Set{Project: "deployed", Verb: apply.VerbDeploy, Part: apply.PartDeploy, Namespace: s.applier.set.Namespace}
	options := apply.Options{Manager: apply.ProjectManager, Set: &deployed}
	if _, err := s.applier.engine.Apply(t.Context(), []*unstructured.Unstructured{role}, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := s.applier.engine.Delete(context.Background(), []*unstructured.Unstructured{role}, options); err != nil {
			t.Error(err)
		}
	})
	s.manifests.identity = identityOf(role)
	for range 2 {
		if err := s.applyIdentity(t.Context(), &Round{}); err != nil {
			t.Fatal(err)
		}
		s.manifests.identity = identityOf()
	}
	if !s.exists(t, role) || !slices.ContainsFunc(screen.texts, func(text string) bool { return strings.Contains(text, "opdock deploy of deployed uses it") }) {
		t.Errorf("it is gone, or nothing was said: %q", screen.texts)
	}
}

// The webhooks of a session that was killed are gone when the next begins, whatever they are called by now. A round that ends
// before leaves them to the next.
func TestWebhooksOfAKilledSession(t *testing.T) {
	hooks := func(name string) *unstructured.Unstructured {
		return object(t, "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: "+name+"}, webhooks: [{name: killed.example.com, "+
			"admissionReviewVersions: [v1], sideEffects: None, clientConfig: {service: {name: hooks, namespace: default}}, "+
			"rules: [{apiGroups: [killed.example.com], apiVersions: [v1], operations: [CREATE], resources: [ships]}]}]}")
	}
	killed, _ := clusterSession(t, "killed")
	cleared(t, killed)
	old, current := localWebhooks(hooks("old-hooks"), 7000, killed.certificates.authority), hooks("new-hooks")
	if _, _, err := killed.applier.applyPart(t.Context(), partWebhooks, []*unstructured.Unstructured{old}, nil); err != nil {
		t.Fatal(err)
	}
	if !killed.exists(t, old) {
		t.Fatal("they were not applied")
	}
	next, _ := clusterSession(t, "killed")
	next.manifests.webhooks = []*unstructured.Unstructured{current}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := next.clearWebhooks(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := next.clearWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	if next.exists(t, old) {
		t.Error("they are still there, and block the API at a dead port")
	}
	// One of another project as well: there is one session on a cluster at a time.
	other, _ := clusterSession(t, "killed-other")
	if _, _, err := killed.applier.applyPart(t.Context(), partWebhooks, []*unstructured.Unstructured{old}, nil); err != nil {
		t.Fatal(err)
	}
	if err := other.clearWebhooks(t.Context()); err != nil || other.exists(t, old) {
		t.Errorf("they are still there: %v", err)
	}
}

// Projects of kubebuilder v2 have webhooks in a version that Kubernetes has removed. There are none to delete, and the message names the
// version to use.
func TestWebhooksInARemovedVersion(t *testing.T) {
	s, _ := clusterSession(t, "removed")
	cleared(t, s)
	s.manifests.webhooks = []*unstructured.Unstructured{
		object(t, "{apiVersion: admissionregistration.k8s.io/v1beta1, kind: ValidatingWebhookConfiguration, metadata: {name: removed-hooks}, webhooks: []}"),
	}
	if err := s.clearWebhooks(t.Context()); err != nil {
		t.Error(err)
	}
	_, _, err := s.applier.applyPart(t.Context(), partWebhooks, s.manifests.webhooks, nil)
	const want = "the cluster does not have admissionregistration.k8s.io/v1beta1, Kind=ValidatingWebhookConfiguration, but has version v1: change the apiVersion"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	unheard := object(t, "{apiVersion: removed.example.com/v1, kind: Ship, metadata: {name: argo}}")
	if err := s.applier.unknown(unheard); !strings.HasSuffix(err.Error(), "the cluster does not have removed.example.com/v1, Kind=Ship") {
		t.Errorf("got %v", err)
	}
}

// A webhook for all ConfigMaps whose operator does not run refuses them, but not the inventory of the next session.
func TestWebhooksForAllConfigMaps(t *testing.T) {
	s, _ := clusterSession(t, "catching")
	cleared(t, s)
	all := localWebhooks(object(t, "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: catching-hooks}, webhooks: "+
		"[{name: catching.example.com, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {service: {name: hooks, namespace: default}}, "+
		"namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}, "+
		"rules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}]}]}"), 7000, s.certificates.authority)
	t.Cleanup(func() {
		if err := s.applier.remove(context.Background(), []*unstructured.Unstructured{all}); err != nil {
			t.Error(err)
		}
	})
	if _, _, err := s.applier.applyPart(t.Context(), partWebhooks, []*unstructured.Unstructured{all}, nil); err != nil {
		t.Fatal(err)
	}
	other := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: other-, namespace: kube-system}}")
	testenv.Eventually(t, "another ConfigMap is refused", func() bool {
		return apierrors.IsInternalError(s.applier.server.Create(t.Context(), other.DeepCopy(), client.DryRunAll))
	})
	if err := s.applier.hold(t.Context(), apply.SessionHere()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(s.applier.removePart(t.Context(), []*unstructured.Unstructured{all}), s.applier.hold(t.Context(), "")); err != nil {
		t.Error(err)
	}
}

// While a session runs, the cluster says so.
func TestASessionIsKnownToOthers(t *testing.T) {
	s, _ := clusterSession(t, "held")
	known := func() []string {
		t.Helper()
		all, err := s.applier.engine.Inventories(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		var sessions []string
		for _, one := range all {
			if one.Project == "held" {
				sessions = append(sessions, one.Session)
			}
		}
		return sessions
	}
	if err := s.applier.hold(t.Context(), apply.SessionHere()); err != nil {
		t.Fatal(err)
	}
	if got := known(); !slices.Equal(got, []string{apply.SessionHere()}) {
		t.Errorf("the cluster knows %q", got)
	}
	if err := s.applier.hold(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if got := known(); len(got) > 0 {
		t.Errorf("the cluster still knows %q", got)
	}
}

// The user may have deleted something by hand before pressing r.
func TestRestartAppliesAgain(t *testing.T) {
	s := &Session{retry: time.NewTimer(time.Hour)}
	if quit := s.press(t.Context(), "r"); quit || !s.pending.has(workRestart) || !s.pending.has(workManifests) {
		t.Errorf("it will do %b", s.pending)
	}
}

// On a cluster where pods really run, a deployed operator and the one under development would both work.
func TestADeployedOperatorIsNamed(t *testing.T) {
	screen := &said{}
	s := &Session{Options: Options{Project: &project.Project{Name: "harbour"}}, applier: &applier{}}
	s.applier.options.Note = s.applier.once(screen.Say)
	for range 2 {
		s.sayDeployed(map[apply.ID]string{
			{Group: "apps", Kind: "Deployment", Namespace: "sea", Name: "manager"}: "opdock deploy of harbour",
			{Group: "apps", Kind: "Deployment", Namespace: "sea", Name: "other"}:   "opdock deploy of others",
			{Kind: "Service", Namespace: "sea", Name: "manager"}:                   "opdock deploy of harbour",
		})
	}
	if len(screen.texts) != 1 || !strings.HasPrefix(screen.texts[0], "Deployment sea/manager was applied by opdock deploy of harbour") {
		t.Errorf("it said %q", screen.texts)
	}
}
