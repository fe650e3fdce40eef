// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/testenv"
)

const (
	operators      = 10
	mapsOfOperator = 10
)

// operator is a client behind a lens of its own, with an account of its own. All operators watch the same ConfigMaps, and each may
// write only some of them.
type operator struct {
	name, namespace string
	lens            *lens.Lens
	client          kubernetes.Interface
	path            string
	recording       *lens.Recording
	maps            []string
	foreign         string // one that it may not write
}

// TestTenOperatorsThroughTenLenses lets ten operators work in the same namespace at once.
func TestTenOperatorsThroughTenLenses(t *testing.T) {
	testenv.ControlPlane(t)
	namespace := clustertest.Namespace(t)
	all := make([]*operator, operators)
	for i := range all {
		all[i] = newOperator(t, namespace, i)
	}
	working, ctx := errgroup.WithContext(t.Context())
	for _, o := range all {
		working.Go(func() error { return o.work(ctx) })
	}
	if err := working.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, o := range all {
		// The credential of one lens is worth nothing at another.
		config := all[(i+1)%operators].lens.Config()
		config.BearerToken = o.lens.Config().BearerToken
		client := must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(config))
		if _, err := client.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
			t.Errorf("%s at the lens of another operator: %v", o.name, err)
		}
	}
	var closing errgroup.Group
	for _, o := range all {
		closing.Go(func() error { return errors.Join(o.lens.Close(), o.recording.Close()) })
	}
	if err := closing.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		o.check(t)
	}
}

func nameOfMap(operator, number int) string { return fmt.Sprintf("map-%d-%d", operator, number) }

func newOperator(t *testing.T, namespace string, i int) *operator {
	t.Helper()
	c := clustertest.Shared(t)
	unlimited := rest.CopyConfig(c.Config())
	unlimited.QPS = -1
	admin := must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(unlimited))
	o := &operator{
		name: fmt.Sprintf("operator-%d", i), namespace: namespace, path: filepath.Join(t.TempDir(), "recording.jsonl"),
		foreign: nameOfMap((i+1)%operators, 0),
	}
	for number := range mapsOfOperator {
		o.maps = append(o.maps, nameOfMap(i, number))
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: nameOfMap(i, number), Labels: map[string]string{"app": "ten"}}}
		must[*corev1.ConfigMap](t)(admin.CoreV1().ConfigMaps(namespace).Create(t.Context(), made, metav1.CreateOptions{}))
	}
	must[*rbacv1.Role](t)(admin.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: o.name},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"update"}, ResourceNames: o.maps},
		},
	}, metav1.CreateOptions{}))
	must[*rbacv1.RoleBinding](t)(admin.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: o.name}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: o.name, APIGroup: rbacv1.GroupName},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: o.name, Namespace: namespace}},
	}, metav1.CreateOptions{}))
	identity := must[*rest.Config](t)(asConfig(c.As("system:serviceaccount:" + namespace + ":" + o.name)))
	direct := must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(identity))
	testenv.Eventually(t, o.name+" has its rights", func() error {
		_, err := direct.CoreV1().ConfigMaps(namespace).Update(t.Context(), o.written(o.maps[0]), metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	o.lens = must[*lens.Lens](t)(lens.Start(t.Context(), lens.Options{Upstream: identity}))
	t.Cleanup(func() { _ = o.lens.Close() })
	o.recording = must[*lens.Recording](t)(lens.Record(o.lens.Stream(), o.path, lens.Header{Identity: o.name}, 0))
	config := o.lens.Config()
	config.UserAgent = o.name
	o.client = must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(config))
	return o
}

func (o *operator) written(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "ten"}}, Data: map[string]string{"by": o.name}}
}

// work writes what it may and tries what it may not, and returns when it has seen the writes of all operators.
func (o *operator) work(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, testenv.Patience)
	defer cancel()
	factory := informers.NewSharedInformerFactoryWithOptions(o.client, 0, informers.WithNamespace(o.namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "app=ten" }))
	seen := make(chan string, operators*mapsOfOperator)
	informer := factory.Core().V1().ConfigMaps().Informer()
	note := func(object any) {
		if found, ok := object.(*corev1.ConfigMap); ok && found.Data["by"] != "" {
			select {
			case seen <- found.Name:
			case <-ctx.Done():
			}
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, now any) { note(now) }}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("the cache of %s does not sync", o.name)
	}
	client := o.client.CoreV1().ConfigMaps(o.namespace)
	for _, name := range o.maps {
		if _, err := client.Update(ctx, o.written(name), metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
	}
	if _, err := client.Update(ctx, o.written(o.foreign), metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
		return fmt.Errorf("%s writes %s of another operator: %w", o.name, o.foreign, err)
	}
	for maps := map[string]bool{}; len(maps) < operators*mapsOfOperator; {
		select {
		case name := <-seen:
			maps[name] = true
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s has seen %d ConfigMaps", o.name, len(maps)), ctx.Err())
		}
	}
	return nil
}

// check reads its recording, which must have its own requests and nothing else.
func (o *operator) check(t *testing.T) {
	t.Helper()
	file := must[*os.File](t)(os.Open(o.path))
	defer file.Close()
	var written, refused, echoes []string
	recorded := must[*lens.Recorded](t)(lens.ReadRecording(file, func(e *lens.Event) error {
		if d := e.Delivery; d != nil && d.Write != 0 {
			echoes = append(echoes, d.Object.Name)
		}
		r := e.Request
		if r == nil {
			return nil
		}
		if r.Delivered != 0 { // before the write was answered
			echoes = append(echoes, r.Resource.Name)
		}
		if r.UserAgent != o.name {
			t.Errorf("the recording of %s has a request of %s: %s", o.name, r.UserAgent, say(r))
		}
		switch {
		case r.Verb == "update" && r.Status == http.StatusOK:
			written = append(written, r.Resource.Name)
		case r.Refused():
			refused = append(refused, r.Resource.Name)
			if !strings.Contains(r.Message, o.namespace+":"+o.name+`"`) {
				t.Errorf("%s was refused as another identity: %s", o.name, r.Message)
			}
		}
		return nil
	}))
	if !slices.Equal(written, o.maps) || !slices.Equal(refused, []string{o.foreign}) {
		t.Errorf("%s has written %v and was refused %v", o.name, written, refused)
	}
	slices.Sort(echoes)
	if own := slices.Sorted(slices.Values(o.maps)); !slices.Equal(echoes, own) {
		t.Errorf("%s takes as its own writes %v, and wrote %v", o.name, echoes, own)
	}
	if recorded.Header.Identity != o.name || recorded.Totals.Lost != 0 {
		t.Errorf("the recording of %s is of %s, and lacks %d events", o.name, recorded.Header.Identity, recorded.Totals.Lost)
	}
}
