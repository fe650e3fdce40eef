// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	kappv1 "github.com/opdock/opdock/api/kapp/v1"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/testenv"
)

const manifest = `
apiVersion: app.example.com/v1
kind: AppService
metadata: {name: web}
spec: {size: 1, image: nginx, ports: [{port: 80}]}
`

func TestAKindComesAndGoesWhileTheManagerRuns(t *testing.T) {
	c := fleettest.Client(t)
	kinds := appService(t)
	uninstall(t, c, kinds[0])
	// The tests after this one need it again.
	t.Cleanup(func() { install(t, kinds) })

	namespace := clustertest.Namespace(t)
	var lines lines
	fleettest.Run(t, fleettest.Config(t), manager.Options{Kinds: kinds, Namespaces: []string{namespace}, Logger: lines.logger()})
	testenv.Await(t, func() string { return lines.missing("This kind is not installed", 1) })

	install(t, kinds)
	becomesReady(t, c, namespace)
	if what := lines.missing("This kind is not installed", 1); what != "" {
		t.Error(what)
	}

	uninstall(t, c, kinds[0])
	testenv.Await(t, func() string { return lines.missing("This kind is no longer served", 1) })
	install(t, kinds)
	becomesReady(t, c, namespace)
}

// TestDiscoveryIsBehind is about a kind that was uninstalled a moment ago: discovery still names it, and the server does
// not know it any more. A manager that believed discovery would wait for it with all its controllers.
func TestDiscoveryIsBehind(t *testing.T) {
	namespace := clustertest.Namespace(t)
	gone := &goneResource{resource: "collectors"}
	gone.isGone.Store(true)
	config := rest.CopyConfig(fleettest.Config(t))
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { gone.next = next; return gone })
	var lines lines
	fleettest.Run(t, config, manager.Options{Namespaces: []string{namespace}, Logger: lines.logger()})
	c := fleettest.Client(t)
	becomesReady(t, c, namespace)
	testenv.Await(t, func() string { return lines.missing("This kind is not installed", 1) })

	// KAPP, which watches Collectors too, works without them.
	kapp := fleettest.Create(t, c, namespace, `
apiVersion: kanggege.k8sio.com/v1
kind: KAPP
metadata: {name: store}
spec:
  components:
  - name: front
    resource: {apiVersion: app.example.com/v1, kind: AppService, spec: {image: nginx}}
`, &kappv1.KAPP{})
	fleettest.Await(t, c, kapp, func(kapp *kappv1.KAPP) string {
		return fleettest.Ready(kapp.Status.Conditions, kapp.Generation)
	})

	gone.isGone.Store(false)
	touch(t, c, "collectors.collector.ip")
	testenv.Await(t, func() string { return lines.missing("This kind is now installed", 1) })
}

// goneResource answers requests for a resource as a server does that does not serve it.
type goneResource struct {
	resource string
	isGone   atomic.Bool
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (g *goneResource) RoundTrip(request *http.Request) (*http.Response, error) {
	if g.isGone.Load() && strings.HasSuffix(request.URL.Path, "/"+g.resource) {
		recorder := httptest.NewRecorder()
		http.Error(recorder, "404 page not found", http.StatusNotFound)
		return recorder.Result(), nil
	}
	return g.next.RoundTrip(request)
}

// touch changes an annotation of a CRD, which is an event to those who watch it.
func touch(t *testing.T, c client.Client, crd string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	object.SetName(crd)
	patch := []byte(`{"metadata": {"annotations": {"touched-by": "` + t.Name() + `"}}}`)
	if err := c.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

func becomesReady(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	app := fleettest.Create(t, c, namespace, manifest, &appv1.AppService{})
	fleettest.Await(t, c, app, func(app *appv1.AppService) string {
		return fleettest.Ready(app.Status.Conditions, app.Generation)
	})
}

func appService(t *testing.T) []controller.Kind {
	t.Helper()
	for _, kind := range controller.Kinds {
		if kind.Kind == "AppService" {
			return []controller.Kind{kind}
		}
	}
	t.Fatal("there is no AppService")
	return nil
}

func install(t *testing.T, kinds []controller.Kind) {
	t.Helper()
	// Not the test's context, which has ended when this is called to clean up.
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
	defer cancel()
	if err := controller.Install(ctx, clustertest.Shared(t).Config(), kinds); err != nil {
		t.Error(err)
	}
}

func uninstall(t *testing.T, c client.Client, kind controller.Kind) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	crd.SetName(kind.CRD())
	if err := c.Delete(t.Context(), crd); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	fleettest.AwaitGone(t, c, crd)
}

// lines keeps what is logged.
type lines struct {
	mutex sync.Mutex
	all   []string
}

func (l *lines) logger() logr.Logger {
	return funcr.New(func(prefix, arguments string) {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		l.all = append(l.all, prefix+" "+arguments)
	}, funcr.Options{})
}

// missing returns how the number of lines with a text differs from what is expected.
func (l *lines) missing(text string, expected int) string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	found := 0
	for _, line := range l.all {
		if strings.Contains(line, text) {
			found++
		}
	}
	if found == expected {
		return ""
	}
	return fmt.Sprintf("%d lines with %q instead of %d in:\n%s", found, text, expected, strings.Join(l.all, "\n"))
}
