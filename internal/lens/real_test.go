// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/testenv"
)

// world is a lens in front of a real control plane.
type world struct {
	*testing.T
	lens      *lens.Lens
	client    kubernetes.Interface // through the lens
	direct    kubernetes.Interface
	namespace string
}

func newWorld(t *testing.T, contentType string, change func(*lens.Options)) *world {
	t.Helper()
	testenv.ControlPlane(t)
	w := &world{T: t, namespace: clustertest.Namespace(t)}
	options := lens.Options{Upstream: clustertest.Shared(t).Config()}
	if change != nil {
		change(&options)
	}
	var err error
	if w.lens, err = lens.Start(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.lens.Close(); err != nil {
			t.Error(err)
		}
	})
	config := w.lens.Config()
	config.ContentType = contentType
	if w.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if w.direct, err = kubernetes.NewForConfig(clustertest.Shared(t).Config()); err != nil {
		t.Fatal(err)
	}
	return w
}

// requests are the writes and reads of one resource that the lens has seen, in their order.
func (w *world) requests(resource string) (found []*lens.Request) {
	for _, e := range w.events() {
		if e.Request != nil && e.Request.Resource.Resource == resource {
			found = append(found, e.Request)
		}
	}
	return found
}

func (w *world) events() (all []lens.Event) {
	w.Helper()
	if err := w.lens.Flush(w.Context()); err != nil {
		w.Fatal(err)
	}
	// Those that are there by now.
	for e := range w.lens.Stream().Follow(w.Context(), 0) {
		all = append(all, *e)
		if e.Seq == w.lens.Stream().Last() {
			break
		}
	}
	return all
}

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// say tells a request in few words.
func say(r *lens.Request) string {
	var line strings.Builder
	fmt.Fprintf(&line, "%s %s %d", r.Verb, r.Resource.Name, r.Status)
	if r.DryRun {
		line.Reset()
		fmt.Fprintf(&line, "%s dry run %d", r.Verb, r.Status)
	}
	if r.Change != nil {
		for _, f := range r.Change.Fields {
			fmt.Fprintf(&line, " %s:%s>%s", f.Path, f.Old, f.New)
		}
		if r.Change.None {
			line.WriteString(" none")
		}
	}
	for _, implied := range r.Implies {
		line.WriteString(" needs " + implied.Verb)
	}
	if r.Reason != "" {
		line.WriteString(" " + r.Reason)
	}
	if r.Undecoded != "" {
		line.WriteString(" undecoded: " + r.Undecoded)
	}
	return line.String()
}

func TestWhatAClientDoes(t *testing.T) {
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		t.Run(contentType, func(t *testing.T) {
			w := newWorld(t, contentType, nil)
			ctx := t.Context()
			maps := w.client.CoreV1().ConfigMaps(w.namespace)
			made := must[*corev1.ConfigMap](t)(maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"x": "1"}}, metav1.CreateOptions{}))
			made.Data["x"] = "2"
			updated := must[*corev1.ConfigMap](t)(maps.Update(ctx, made, metav1.UpdateOptions{}))
			must[*corev1.ConfigMap](t)(maps.Update(ctx, updated, metav1.UpdateOptions{}))
			must[*corev1.ConfigMap](t)(maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"y":"new"}}`), metav1.PatchOptions{}))
			must[*corev1.ConfigMap](t)(maps.Apply(ctx, applycorev1.ConfigMap("b", w.namespace).WithData(map[string]string{"z": "1"}), metav1.ApplyOptions{FieldManager: "tester"}))
			must[*corev1.ConfigMap](t)(maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "dry-"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
			must[*corev1.ConfigMapList](t)(maps.List(ctx, metav1.ListOptions{LabelSelector: "a=b"}))
			if _, err := maps.Get(ctx, "missing", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Fatalf("the error is %v", err)
			}
			made.ResourceVersion = "1"
			if _, err := maps.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
				t.Fatalf("the error is %v", err)
			}
			if err := maps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, r := range w.requests("configmaps") {
				said = append(said, say(r))
			}
			want := []string{
				"create a 201", `update a 200 data.x:"1">"2"`, "update a 200 none", `patch a 200 data.y:>"new"`, "apply b 201 needs create",
				"create dry run 201", "list  200", "get missing 404 NotFound", "update a 409 Conflict", "delete a 200",
			}
			if !slices.Equal(said, want) {
				t.Errorf("recorded are\n%s\ninstead of\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
			}
			last := w.requests("configmaps")
			if deleted := last[len(last)-1]; deleted.Object == nil || deleted.Object.UID != string(made.UID) {
				t.Errorf("deleted was %+v", deleted.Object)
			}
		})
	}
}

// TestChangesBetweenEncodings writes an object in JSON and protobuf in turn: the versions to compare are decoded differently.
func TestChangesBetweenEncodings(t *testing.T) {
	w := newWorld(t, "application/json", nil)
	config := w.lens.Config()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	compact := must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(config))
	made := must[*corev1.ConfigMap](t)(w.client.CoreV1().ConfigMaps(w.namespace).Create(
		t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"x": "1"}}, metav1.CreateOptions{},
	))
	for i, client := range []kubernetes.Interface{compact, w.client, compact, compact, w.client} {
		made.Data["x"] = strconv.Itoa(i + 2)
		made = must[*corev1.ConfigMap](t)(client.CoreV1().ConfigMaps(w.namespace).Update(t.Context(), made, metav1.UpdateOptions{}))
	}
	for i, r := range w.requests("configmaps")[1:] {
		if got, want := say(r), fmt.Sprintf(`update a 200 data.x:"%d">"%d"`, i+1, i+2); got != want {
			t.Errorf("write %d is recorded as %s, not %s", i, got, want)
		}
	}
}

// TestInformersThroughTheLens uses WatchList, which hangs if the bookmark at its end is held back.
func TestInformersThroughTheLens(t *testing.T) {
	for name, faults := range map[string]lens.Faults{"as it comes": nil, "event by event": undisturbed{}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "application/vnd.kubernetes.protobuf", func(o *lens.Options) { o.Faults = faults })
			ctx := t.Context()
			maps := w.direct.CoreV1().ConfigMaps(w.namespace)
			must[*corev1.ConfigMap](t)(maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "early"}}, metav1.CreateOptions{}))
			factory := informers.NewSharedInformerFactoryWithOptions(w.client, 0, informers.WithNamespace(w.namespace))
			informer := factory.Core().V1().ConfigMaps().Informer()
			seen := make(chan string, 100)
			must[cache.ResourceEventHandlerRegistration](t)(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
				AddFunc:    func(o any) { seen <- "+" + o.(*corev1.ConfigMap).Name },
				UpdateFunc: func(_, o any) { seen <- "~" + o.(*corev1.ConfigMap).Name },
				DeleteFunc: func(o any) { seen <- "-" + o.(*corev1.ConfigMap).Name },
			}))
			factory.Start(ctx.Done())
			if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
				t.Fatal("the cache does not sync")
			}
			own := must[*corev1.ConfigMap](t)(w.client.CoreV1().ConfigMaps(w.namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "own"}}, metav1.CreateOptions{}))
			must[*corev1.ConfigMap](t)(maps.Patch(ctx, "own", types.MergePatchType, []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{FieldManager: "somebody"}))
			if err := maps.Delete(ctx, "own", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			wanted := []string{"+own", "~own", "-own"}
			for len(wanted) > 0 {
				select {
				case got := <-seen:
					if got == wanted[0] {
						wanted = wanted[1:]
					}
				case <-ctx.Done():
					t.Fatalf("%v were not seen", wanted)
				}
			}
			var said []string
			for _, e := range w.events() {
				if d := e.Delivery; d != nil && d.Object != nil && d.Object.Name != "kube-root-ca.crt" {
					line := fmt.Sprintf("%s %s %s", d.Type, d.Object.Kind, d.Object.Name)
					if d.Initial {
						line += " initial"
					}
					said = append(said, line)
				}
			}
			want := []string{"ADDED ConfigMap early initial", "ADDED ConfigMap own", "MODIFIED ConfigMap own", "DELETED ConfigMap own"}
			if !slices.Equal(said, want) {
				t.Errorf("recorded are\n%s\ninstead of\n%s (own is %s)", strings.Join(said, "\n"), strings.Join(want, "\n"), own.UID)
			}
			if echoes := w.lens.Stream().Totals().Echoes; echoes != 1 {
				t.Errorf("%d events are known to be about its own writes", echoes)
			}
		})
	}
}

// undisturbed is Faults that pass everything on, one event at a time.
type undisturbed struct{}

func (undisturbed) Request(context.Context, *lens.Call) lens.Verdict     { return lens.Verdict{} }
func (undisturbed) Answer(context.Context, *lens.Call, int) lens.Verdict { return lens.Verdict{} }
func (undisturbed) Deliver(context.Context, *lens.Call, *lens.Frame) lens.Verdict {
	return lens.Verdict{}
}

func TestRightsOfTheIdentity(t *testing.T) {
	c := clustertest.Shared(t)
	w := newWorld(t, "application/json", nil)
	identity := must[*rest.Config](t)(asConfig(c.As("system:serviceaccount:" + w.namespace + ":operator")))
	if err := w.lens.Forward(identity, "system:serviceaccount:"+w.namespace+":operator"); err != nil {
		t.Fatal(err)
	}
	_, err := w.client.CoreV1().Secrets(w.namespace).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), ":operator") {
		t.Errorf("the error is %v", err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}}}}
	must[*rbacv1.Role](t)(w.direct.RbacV1().Roles(w.namespace).Create(t.Context(), role, metav1.CreateOptions{}))
	must[*rbacv1.RoleBinding](t)(w.direct.RbacV1().RoleBindings(w.namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "reader", APIGroup: rbacv1.GroupName},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "operator", Namespace: w.namespace}},
	}, metav1.CreateOptions{}))
	testenv.Eventually(t, "the right is there", func() error {
		_, err := w.client.CoreV1().Secrets(w.namespace).List(t.Context(), metav1.ListOptions{})
		return err
	})
	if err := w.lens.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	use := w.lens.Stream().Totals().Uses
	index := slices.IndexFunc(use, func(u *lens.Use) bool { return u.Resource == "secrets" && u.Verb == "list" })
	if index < 0 || use[index].Forbidden == 0 || use[index].Count <= use[index].Forbidden || use[index].Namespaces[w.namespace] != use[index].Count {
		t.Errorf("counted are %+v", use)
	}
}

func TestOwnersThatAreBlocked(t *testing.T) {
	w := newWorld(t, "application/json", nil)
	maps := w.client.CoreV1().ConfigMaps(w.namespace)
	owner := must[*corev1.ConfigMap](t)(maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{}))
	child := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "child", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID, BlockOwnerDeletion: ptr.To(true), Controller: ptr.To(true),
	}}}, StringData: map[string]string{"password": "hunter2"}}
	child = must[*corev1.Secret](t)(w.client.CoreV1().Secrets(w.namespace).Create(t.Context(), child, metav1.CreateOptions{}))
	child.StringData = map[string]string{"password": "hunter3"}
	must[*corev1.Secret](t)(w.client.CoreV1().Secrets(w.namespace).Update(t.Context(), child, metav1.UpdateOptions{}))
	requests := w.requests("secrets")
	if len(requests) != 2 {
		t.Fatalf("there are %d requests", len(requests))
	}
	implied := requests[0].Implies
	if len(implied) != 1 || implied[0].Verb != "update" || implied[0].Resource.Resource != "configmaps" || implied[0].Resource.Subresource != "finalizers" ||
		len(requests[1].Implies) != 0 {
		t.Errorf("implied are %+v and %+v", implied, requests[1].Implies)
	}
	for _, e := range w.events() {
		if text := fmt.Sprintf("%+v", e.Request); strings.Contains(text, "hunter") {
			t.Errorf("a secret is recorded: %s", text)
		}
	}
	if change := requests[1].Change; change == nil || len(change.Fields) != 1 || !strings.Contains(change.Fields[0].New, "hidden") {
		t.Errorf("the change of a secret is %+v", change)
	}
}

// TestRefusalsThatQuoteSecrets sends Secrets that the API server does not accept: its messages have their values.
func TestRefusalsThatQuoteSecrets(t *testing.T) {
	w := newWorld(t, "application/json", nil)
	secrets := w.client.CoreV1().Secrets(w.namespace)
	refused := func(_ *corev1.Secret, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "482913") {
			t.Fatalf("the error is %v", err)
		}
	}
	refused(secrets.Patch(t.Context(), "a", types.ApplyPatchType, []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"pin":482913}}`),
		metav1.PatchOptions{FieldManager: "tester"}))
	refused(secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"pin": "482913!"}}}, metav1.CreateOptions{}))
	var said []string
	for _, r := range w.requests("secrets") {
		said = append(said, fmt.Sprint(r.Status, " ", r.Message))
	}
	want := []string{
		"500 failed to create typed patch object (/a; /v1, Kind=Secret): .stringData.pin: expected string, got (the rest is hidden: it may contain values of the Secret)",
		"422 Invalid: metadata.labels (the rest is hidden: it may contain values of the Secret)",
	}
	if !slices.Equal(said, want) {
		t.Errorf("recorded are %q", said)
	}
}

func asConfig[I interface{ Config() *rest.Config }](identity I, err error) (*rest.Config, error) {
	if err != nil {
		return nil, err
	}
	return identity.Config(), nil
}

// TestRefusedWritesEnd sends writes that the API server refuses without reading their bodies.
func TestRefusedWritesEnd(t *testing.T) {
	w := newWorld(t, "application/vnd.kubernetes.protobuf", nil)
	identity := must[*rest.Config](t)(asConfig(clustertest.Shared(t).As("system:serviceaccount:" + w.namespace + ":stranger")))
	if err := w.lens.Forward(identity, "system:serviceaccount:"+w.namespace+":stranger"); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	for i := range 1000 {
		ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
		_, err := w.client.CoreV1().Secrets(w.namespace).Create(ctx, secret, metav1.CreateOptions{})
		cancel()
		if !apierrors.IsForbidden(err) {
			t.Fatalf("write %d: %v", i, err)
		}
	}
}
