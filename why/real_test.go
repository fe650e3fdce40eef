// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/why"
)

// world is a manager with a tiny controller: for each ConfigMap with the label original it keeps a copy of its data in
// another one, which it owns. Secrets wake the ConfigMap of the same name.
type world struct {
	*testing.T
	client    client.Client
	recorder  *why.Recorder
	namespace string
	queried   uint64
}

type flavour struct {
	priorityQueue, unstructured, metadata, clientset, apply bool
}

func newWorld(t *testing.T, f flavour) *world {
	t.Helper()
	testenv.ControlPlane(t)
	namespace := clustertest.Namespace(t)
	restConfig := clustertest.Shared(t).Config()
	recorder := why.New(why.Options{Registerer: prometheus.NewRegistry()})
	options := ctrl.Options{
		Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, NewClient: recorder.NewClient,
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}, DefaultTransform: why.KeepWriters(nil)},
		Controller: config.Controller{SkipNameValidation: ptr.To(true), UsePriorityQueue: ptr.To(f.priorityQueue)},
		// The cache that the copier would read from need not be the one that is watched, and may be behind it.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.ConfigMap{}}}},
	}
	if f.clientset {
		restConfig.Wrap(recorder.Transport)
		options.NewClient = nil
	}
	mgr, err := ctrl.NewManager(restConfig, options)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		t.Fatal(err)
	}
	copier := &copier{client: mgr.GetClient(), apply: f.apply}
	if f.clientset {
		copier.clients = clients
	}
	var object client.Object = &corev1.ConfigMap{}
	if f.unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		object = u
	}
	isOriginal := builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetLabels()["original"] != "" }))
	toSameName := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
	})
	b := why.ControllerManagedBy(mgr, recorder).For(object, isOriginal).Owns(object).Named("copier")
	if f.metadata {
		b.WatchesMetadata(&corev1.Secret{}, toSameName)
	} else {
		b.Watches(&corev1.Secret{}, toSameName)
	}
	if err := b.Complete(copier); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the manager: %v", err)
		}
	})
	direct, err := client.New(clustertest.Shared(t).Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, client: client.WithFieldOwner(direct, "user"), recorder: recorder, namespace: namespace}
	// What there is before the watches begin is listed, and not created.
	w.must(w.client.Create(t.Context(), w.original("probe", nil)))
	w.await("probe", " ConfigMap "+namespace+"/probe")
	return w
}

type copier struct {
	client  client.Client // reads from the server
	clients kubernetes.Interface
	// apply is whether it applies the copy in each reconcile, as many do.
	apply bool
}

func (c *copier) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	original := &corev1.ConfigMap{}
	if err := c.client.Get(ctx, request.NamespacedName, original); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !original.DeletionTimestamp.IsZero() {
		patch := client.MergeFrom(original.DeepCopy())
		original.Finalizers = nil
		return reconcile.Result{}, client.IgnoreNotFound(c.client.Patch(ctx, original, patch))
	}
	if c.apply {
		owner := applymetav1.OwnerReference().WithAPIVersion("v1").WithKind("ConfigMap").WithName(original.Name).WithUID(original.UID).WithController(true)
		duplicate := applycorev1.ConfigMap("copy-of-"+original.Name, original.Namespace).WithOwnerReferences(owner).WithData(original.Data)
		return reconcile.Result{}, c.client.Apply(ctx, duplicate, client.FieldOwner("copier"), client.ForceOwnership)
	}
	switch original.Data["do"] {
	case "panic":
		panic("as asked")
	case "wait":
		return reconcile.Result{RequeueAfter: time.Millisecond}, nil
	}
	duplicate := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "copy-of-" + original.Name, Namespace: original.Namespace}}
	if c.clients != nil {
		return reconcile.Result{}, c.byClientset(ctx, original, duplicate)
	}
	_, err := controllerutil.CreateOrUpdate(ctx, c.client, duplicate, func() error {
		duplicate.Data = original.Data
		return controllerutil.SetControllerReference(original, duplicate, c.client.Scheme())
	})
	return reconcile.Result{}, err
}

func (c *copier) byClientset(ctx context.Context, original, duplicate *corev1.ConfigMap) error {
	duplicate.Data = original.Data
	if err := controllerutil.SetControllerReference(original, duplicate, c.client.Scheme()); err != nil {
		return err
	}
	found, err := c.clients.CoreV1().ConfigMaps(original.Namespace).Get(ctx, duplicate.Name, metav1.GetOptions{})
	switch {
	case client.IgnoreNotFound(err) != nil:
		return err
	case err != nil:
		_, err = c.clients.CoreV1().ConfigMaps(original.Namespace).Create(ctx, duplicate, metav1.CreateOptions{})
		return err
	case fmt.Sprint(found.Data) == fmt.Sprint(original.Data):
		return nil
	}
	found.Data = original.Data
	_, err = c.clients.CoreV1().ConfigMaps(original.Namespace).Update(ctx, found, metav1.UpdateOptions{})
	return err
}

func (w *world) original(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace, Labels: map[string]string{"original": "yes"}}, Data: data}
}

// await returns the next record for which a cause, as text, has all the parts.
func (w *world) await(name string, parts ...string) *why.Record {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), testenv.Patience)
	defer cancel()
	var seen []string
	for record := range w.recorder.Follow(ctx, why.Query{Name: name, After: w.queried}) {
		w.queried = record.ID
		for i := range record.Causes {
			text := record.Causes[i].String()
			seen = append(seen, text)
			if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) }) {
				return record
			}
		}
	}
	w.Fatalf("there is no cause with %q among %q", parts, seen)
	return nil
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func TestRealController(t *testing.T) {
	for name, f := range map[string]flavour{
		"priority queue":     {priorityQueue: true},
		"classic queue":      {},
		"unstructured":       {priorityQueue: true, unstructured: true},
		"metadata of others": {priorityQueue: true, metadata: true},
		"clientset":          {priorityQueue: true, clientset: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, f)
			original := w.original("a", map[string]string{"k": "1"})
			w.must(w.client.Create(t.Context(), original))
			created := w.await("a", "created ConfigMap", "by user")
			if created.Written != 1 || created.Writes[0].Verb != "create" || created.Writes[0].Object.Name != "copy-of-a" ||
				created.Writes[0].Object.Kind != "ConfigMap" || created.Writes[0].ResourceVersion == "" {
				t.Errorf("the writes are %+v", created.Writes)
			}
			if created.Object.UID != string(original.UID) || created.Object.Kind != "ConfigMap" || created.Controller != "copier" {
				t.Errorf("the record is about %+v of %s", created.Object, created.Controller)
			}
			// The copy wakes its owner, for nothing.
			echo := w.await("a", "copy-of-a", fmt.Sprintf("write of record %d", created.ID))
			if text := findings(echo); echo.Folded == 1 && text != "self-inflicted noop" {
				t.Errorf("the findings are %q", text)
			}

			original.Data["k"] = "2"
			w.must(w.client.Update(t.Context(), original))
			updated := w.await("a", "updated ConfigMap "+w.namespace+"/a", `data.k "1"→"2"`, "by user")
			if updated.Written != 1 || updated.Writes[0].Verb != "update" || updated.Writes[0].NoChange {
				t.Errorf("the writes are %+v", updated.Writes)
			}
			w.await("a", "copy-of-a", fmt.Sprintf("write of record %d", updated.ID))

			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: w.namespace}, StringData: map[string]string{"password": "hunter2"}}
			w.must(w.client.Create(t.Context(), secret))
			w.await("a", "created Secret", "by user")
			secret.StringData = map[string]string{"password": "hunter3"}
			secret.Annotations = map[string]string{"more": "hunter3"}
			w.must(w.client.Update(t.Context(), secret))
			r := w.await("a", "updated Secret", "hidden")
			if data, err := json.Marshal(r); err != nil || strings.Contains(string(data), "hunter") {
				t.Errorf("%v: the record tells a secret: %s", err, data)
			}

			copied := types.NamespacedName{Namespace: w.namespace, Name: "copy-of-a"}
			w.must(w.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: copied.Namespace, Name: copied.Name}}))
			again := w.await("a", "deleted ConfigMap "+copied.String())
			if again.Written != 1 {
				t.Errorf("the writes are %+v", again.Writes)
			}
			// Before the original goes: a reconcile that has just seen it would make one more copy when the copy goes with it.
			w.await("a", "copy-of-a", fmt.Sprintf("write of record %d", again.ID))
			w.must(w.client.Delete(t.Context(), original))
			w.await("a", "deleted ConfigMap "+w.namespace+"/a")
			total := w.recorder.Summary().Controllers[0]
			if total.UserChanges < 2 || total.Writes != 4 || total.Filtered == 0 {
				t.Errorf("the total is %+v", total)
			}
		})
	}
}

// TestRealRemoval makes changes that leave no trace in managed fields, so their writers are unknown.
func TestRealRemoval(t *testing.T) {
	w := newWorld(t, flavour{priorityQueue: true})
	w.must(w.client.Create(t.Context(), w.original("a", map[string]string{"k": "1"})))
	created := w.await("a", "created ConfigMap", "by user")
	w.await("a", "copy-of-a", fmt.Sprintf("write of record %d", created.ID))
	duplicate := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "copy-of-a"}}
	patch := func(manager, text string) {
		t.Helper()
		w.must(w.client.Patch(t.Context(), duplicate, client.RawPatch(types.MergePatchType, []byte(text)), client.FieldOwner(manager)))
	}
	patch("labeller", `{"metadata": {"labels": {"a": "1", "b": "1"}}}`)
	w.await("a", "metadata.labels.a", "by labeller")
	patch("labeller", `{"metadata": {"labels": {"a": null}}}`)
	removed := w.await("a", `metadata.labels.a "1"→`, "by an unknown writer")
	cause := removed.Causes[len(removed.Causes)-1]
	if len(cause.By) > 0 || !cause.HasUnknownWriter() {
		t.Errorf("it was %+v", cause.By)
	}
	// A writer that removes one and sets another is known by the field that it has set.
	patch("another", `{"metadata": {"labels": {"b": null, "c": "1"}}}`)
	w.await("a", "metadata.labels.b", "by another")
}

// TestRealApplyThatChangesNothing is about an operator that applies its child whatever happens to it.
func TestRealApplyThatChangesNothing(t *testing.T) {
	w := newWorld(t, flavour{priorityQueue: true, apply: true})
	w.must(w.client.Create(t.Context(), w.original("a", map[string]string{"k": "1"})))
	created := w.await("a", "created ConfigMap", "by user")
	w.await("a", "copy-of-a", fmt.Sprintf("write of record %d", created.ID))
	duplicate := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "copy-of-a"}}
	before := w.recorder.Summary().Controllers[0].UserChanges
	for i := range 3 {
		patch := fmt.Sprintf(`{"metadata": {"labels": {"by": "%d"}}}`, i)
		w.must(w.client.Patch(t.Context(), duplicate, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(fmt.Sprint("labeller-", i))))
		labelled := w.await("a", fmt.Sprintf(`→"%d"`, i), "by labeller")
		if cause := labelled.Causes[len(labelled.Causes)-1]; cause.Write != nil {
			t.Errorf("record %d is caused by record %d", labelled.ID, cause.Write.Record)
		}
		if text := findings(labelled); text != "" || !labelled.Writes[0].NoChange {
			t.Errorf("the findings are %q and the writes %+v", text, labelled.Writes)
		}
	}
	if counted := w.recorder.Summary().Controllers[0].UserChanges - before; counted != 3 {
		t.Errorf("%d of 3 changes by a user are counted", counted)
	}
}

func TestRealFinalizer(t *testing.T) {
	w := newWorld(t, flavour{priorityQueue: true})
	original := w.original("a", nil)
	original.Finalizers = []string{"example.com/a"}
	w.must(w.client.Create(t.Context(), original))
	w.await("a", "created ConfigMap", "by user")
	w.must(w.client.Delete(t.Context(), original))
	// Whichever reconcile it was that has taken the finalizer away.
	gone := w.await("a", "deleted ConfigMap "+w.namespace+"/a", "write of record")
	ref := gone.Causes[slices.IndexFunc(gone.Causes, func(c why.Cause) bool { return c.Type == why.Deleted && c.Object.Name == "a" })].Write
	for _, record := range w.recorder.Records(why.Query{Name: "a"}) {
		if record.ID != ref.Record {
			continue
		}
		if write := record.Writes[ref.Index]; write.Verb != "patch" || write.NoChange || write.Object.Name != "a" {
			t.Errorf("the write is %+v", write)
		}
		return
	}
	t.Errorf("there is no record %d", ref.Record)
}

func TestRealTimersAndPanics(t *testing.T) {
	for _, priority := range []bool{true, false} {
		t.Run(fmt.Sprintf("priority queue %t", priority), func(t *testing.T) {
			w := newWorld(t, flavour{priorityQueue: priority})
			w.must(w.client.Create(t.Context(), w.original("waits", map[string]string{"do": "wait"})))
			if r := w.await("waits", "created"); r.Outcome != why.Requeued || r.RequeueAfter != time.Millisecond {
				t.Errorf("the outcome is %s, %s", r.Outcome, r.RequeueAfter)
			}
			w.await("waits", "timer")
			w.await("waits", "timer")
			w.must(w.client.Create(t.Context(), w.original("panics", map[string]string{"do": "panic"})))
			if r := w.await("panics", "created"); r.Outcome != why.Panicked {
				t.Errorf("the outcome is %s", r.Outcome)
			}
			w.await("panics", "retried")
			for _, record := range w.recorder.Records(why.Query{Limit: 1000}) {
				for _, cause := range record.Causes {
					if cause.Type == why.Unknown {
						t.Errorf("the cause of record %d of %s is unknown", record.ID, record.Object.Name)
					}
				}
			}
		})
	}
}

func findings(r *why.Record) string {
	all := make([]string, len(r.Findings))
	for i := range r.Findings {
		all[i] = string(r.Findings[i].Type)
	}
	return strings.Join(all, " ")
}
