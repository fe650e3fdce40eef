// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/rights"
	"github.com/opdock/opdock/internal/testenv"
)

// operatorVariable makes this test binary an operator.
const operatorVariable = "OPDOCK_TEST_OPERATOR"

// idler is a value of this variable, for an operator that does nothing with the samples.
const idler = "idler"

func TestMain(m *testing.M) {
	if os.Getenv(operatorVariable) != "" {
		if err := operate(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const (
	frigate   = "frigate" // the label of ConfigMaps that are reconciled
	finalizer = "example.com/frigate"
)

// operate is an operator in client-go style: it makes a Secret of each ConfigMap, and has a finalizer.
func operate() error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if os.Getenv(operatorVariable) == idler {
		_, err := kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		<-ctx.Done()
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = frigate }))
	reconcile := func(object any) {
		found, ok := object.(*corev1.ConfigMap)
		if !ok {
			return
		}
		err := retry.OnError(retry.DefaultBackoff, apierrors.IsConflict, func() error { return sail(ctx, kube, found) })
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	_, err = factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: reconcile, UpdateFunc: func(_, now any) { reconcile(now) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	return nil
}

func sail(ctx context.Context, kube kubernetes.Interface, found *corev1.ConfigMap) error {
	found = found.DeepCopy()
	maps := kube.CoreV1().ConfigMaps(found.Namespace)
	switch {
	case found.DeletionTimestamp != nil:
		found.Finalizers = nil
		_, err := maps.Update(ctx, found, metav1.UpdateOptions{})
		return client.IgnoreNotFound(err)
	case len(found.Finalizers) == 0:
		found.Finalizers = []string{finalizer}
		if _, err := maps.Update(ctx, found, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	wanted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: found.Name + "-key", Namespace: found.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(found, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
		},
		StringData: map[string]string{"annotations": strconv.Itoa(len(found.Annotations))},
	}
	secrets := kube.CoreV1().Secrets(found.Namespace)
	live, err := secrets.Get(ctx, wanted.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = secrets.Create(ctx, wanted, metav1.CreateOptions{})
		return err
	case err != nil:
		return err
	case string(live.Data["annotations"]) == wanted.StringData["annotations"]:
		return nil
	}
	live.StringData = wanted.StringData
	_, err = secrets.Update(ctx, live, metav1.UpdateOptions{})
	return err
}

// harbor is a cluster with a service account.
type harbor struct {
	*testing.T
	cluster   *cluster.Cluster
	admin     client.Client
	namespace string
}

func newHarbor(t *testing.T, c *cluster.Cluster, namespace string) *harbor {
	t.Helper()
	admin, err := client.New(c.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &harbor{t, c, admin, namespace}
}

// rehearse runs the operator as an account that has certain roles.
func (h *harbor) rehearse(account string, proposal []rights.Role) (outcomes []Outcome, recording string) {
	h.Helper()
	user := "system:serviceaccount:" + h.namespace + ":" + account
	for _, object := range rights.Objects(proposal, h.namespace+"-"+account+"-role", user) {
		if err := h.admin.Create(h.Context(), object.(client.Object)); err != nil {
			h.Fatal(err)
		}
	}
	for _, role := range proposal {
		for _, rule := range role.Rules {
			if err := AwaitRights(h.Context(), h.admin, user, []rights.Rule{{PolicyRule: rule, Namespace: role.Namespace}}); err != nil {
				h.Fatal(err)
			}
		}
	}
	identity, err := h.cluster.As(user)
	if err != nil {
		h.Fatal(err)
	}
	sample := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": account, "labels": map[string]any{frigate: ""}},
	}}
	recording = filepath.Join(h.TempDir(), account+".jsonl")
	self, err := os.Executable()
	if err != nil {
		h.Fatal(err)
	}
	acts, subjects := Samples(h.admin, []*unstructured.Unstructured{sample}, in(h.namespace), func(text string) { h.Error(text) })
	result, err := Run(h.Context(), Options{
		Upstream: identity.Config(), Command: []string{self}, Env: append(os.Environ(), operatorVariable+"=1"), Log: os.Stderr,
		Recording: recording, Header: lens.Header{Identity: user}, Quiet: time.Second, Patience: testenv.Patience,
		Acts: acts, Subjects: subjects,
	})
	if err != nil {
		h.Fatal(err)
	}
	if result.Idle.Unproven() {
		h.Errorf("the operator is taken to do nothing: %s", result.Idle.Sentence())
	}
	return result.Acts, recording
}

func refusals(outcomes []Outcome) (refused []string) {
	for _, outcome := range outcomes {
		for _, one := range outcome.Refused {
			refused = append(refused, one.Verb+" "+one.Resource.Resource+" during "+outcome.Act)
		}
	}
	return refused
}

// leastRights derives the rights of the operator while it may do everything.
func (h *harbor) leastRights() []rights.Role {
	h.Helper()
	everything := []rights.Role{{Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}}}
	outcomes, recording := h.rehearse("admiral", everything)
	if refused := refusals(outcomes); len(refused) > 0 {
		h.Fatalf("an operator with all rights was refused %q", refused)
	}
	collected, err := rights.CollectFile(recording)
	if err != nil {
		h.Fatal(err)
	}
	return rights.Compare(rights.Merge([]*rights.Recording{collected}), rights.Granted{}, rights.Options{}).Proposal
}

// without returns roles without the rules for a resource.
func without(roles []rights.Role, resource string) (fewer []rights.Role) {
	for _, role := range roles {
		role.Rules = slices.DeleteFunc(slices.Clone(role.Rules), func(rule rbacv1.PolicyRule) bool { return slices.Equal(rule.Resources, []string{resource}) })
		fewer = append(fewer, role)
	}
	return fewer
}

// TestTheLeastRightsAreEnough derives the rights of an operator that may do everything, and runs it with those alone.
func TestTheLeastRightsAreEnough(t *testing.T) {
	testenv.ControlPlane(t)
	h := newHarbor(t, clustertest.Shared(t), clustertest.Namespace(t))
	proposal := h.leastRights()
	got := strings.Join(rights.MarkerLines(proposal), "\n")
	const want = `+kubebuilder:rbac:groups="",resources=configmaps,verbs=list;watch;update
+kubebuilder:rbac:groups="",resources=configmaps/finalizers,verbs=update
+kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;update`
	if got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}

	outcomes, _ := h.rehearse("captain", proposal)
	if refused := refusals(outcomes); len(refused) > 0 {
		t.Errorf("with the derived rights, the operator was refused %q", refused)
	}
	for _, outcome := range outcomes[:3] {
		if outcome.Requests == 0 {
			t.Errorf("the operator did nothing during %q", outcome.Act)
		}
	}

	// One right less, and it is seen.
	for i := range proposal[0].Rules {
		rule := &proposal[0].Rules[i]
		if slices.Contains(rule.Resources, "secrets") {
			rule.Verbs = []string{"get", "create"}
		}
	}
	outcomes, _ = h.rehearse("cadet", proposal)
	if refused := refusals(outcomes); len(refused) == 0 || refused[0] != "update secrets during change the samples" {
		t.Errorf("without the right to update secrets, the operator was refused %q", refused)
	}
}

// TestRightsOnOwnersAreEnough derives the rights of an operator on a cluster that does not ask for a right on the finalizers of
// owners, and runs it on one that does, as OpenShift is configured.
func TestRightsOnOwnersAreEnough(t *testing.T) {
	testenv.ControlPlane(t)
	proposal := newHarbor(t, clustertest.Shared(t), clustertest.Namespace(t)).leastRights()
	t.Setenv("OPDOCK_HOME", t.TempDir())
	enforcing, err := cluster.Start(t.Context(), cluster.Options{AdmissionPlugins: []string{"OwnerReferencesPermissionEnforcement"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := enforcing.Stop(); err != nil {
			t.Error(err)
		}
	})
	h := newHarbor(t, enforcing, "default")
	outcomes, _ := h.rehearse("captain", proposal)
	if refused := refusals(outcomes); len(refused) > 0 {
		t.Errorf("with the derived rights, the operator was refused %q", refused)
	}
	outcomes, _ = h.rehearse("cadet", without(proposal, "configmaps/finalizers"))
	if refused := refusals(outcomes); len(refused) == 0 || refused[0] != "create secrets during create the samples" {
		t.Errorf("without the right to finalizers, the operator was refused %q", refused)
	}
}

func TestAnOperatorThatEnds(t *testing.T) {
	_, err := Run(t.Context(), Options{
		Upstream: &rest.Config{Host: "https://127.0.0.1:1"}, Command: []string{"false"}, Log: os.Stderr, Recording: filepath.Join(t.TempDir(), "one.jsonl"), Quiet: time.Second, Patience: 20 * time.Second,
	})
	var ended *EndedError
	if !errors.As(err, &ended) || ended.Act != "start" {
		t.Errorf("got %v", err)
	}
}

func TestAnOperatorThatSendsNothing(t *testing.T) {
	_, err := Run(t.Context(), Options{
		Upstream: &rest.Config{Host: "https://127.0.0.1:1"}, Command: []string{"sleep", "60"}, Log: os.Stderr, Recording: filepath.Join(t.TempDir(), "one.jsonl"),
		Quiet: 100 * time.Millisecond, Patience: 500 * time.Millisecond,
	})
	if err == nil || !strings.Contains(err.Error(), "has sent no request") {
		t.Errorf("got %v", err)
	}
}
