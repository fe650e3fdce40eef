// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/crdspec"
	"github.com/opdock/opdock/internal/testenv"
)

const (
	crdFolder    = "../../config/crd/bases"
	sampleFolder = "../../config/samples"

	// fieldOwner is the field manager of what the tests apply.
	fieldOwner = "apitest"

	// establishing is how long the API server may take to serve new kinds.
	establishing = testenv.Patience
)

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// resources are the kinds by apiVersion and kind, as a manifest names them.
var resources = map[string]schema.GroupVersionResource{
	"app.example.com/v1 AppService":          {Group: "app.example.com", Version: "v1", Resource: "appservices"},
	"app.example.com/v1alpha1 AppService":    {Group: "app.example.com", Version: "v1alpha1", Resource: "appservices"},
	"kubegroup.generals.space/v1 PodCluster": {Group: "kubegroup.generals.space", Version: "v1", Resource: "podclusters"},
	"robot.llleon.io/v1 Robot":               {Group: "robot.llleon.io", Version: "v1", Resource: "robots"},
	"collector.ip/v1 Collector":              {Group: "collector.ip", Version: "v1", Resource: "collectors"},
	"kanggege.k8sio.com/v1 KAPP":             {Group: "kanggege.k8sio.com", Version: "v1", Resource: "kapps"},
}

var installed struct {
	once sync.Once
	err  error
}

// server is an API server that serves the kinds.
type server struct {
	dynamic.Interface
	config *rest.Config
}

// realServer returns the API server that the tests share, with the CustomResourceDefinitions installed. It skips
// the test rather than compiling Kubernetes in the middle of a test run.
func realServer(t *testing.T) server {
	t.Helper()
	testenv.ControlPlane(t)
	config := clustertest.Shared(t).Config()
	// The tests wait for many short requests, not for the client's manners.
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	s := server{Interface: client, config: config}
	installed.once.Do(func() { installed.err = s.install() })
	if installed.err != nil {
		t.Fatalf("installing the kinds: %v", installed.err)
	}
	return s
}

func (s server) discovery(t *testing.T) *discovery.DiscoveryClient {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(s.config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (s server) install() error {
	paths, err := filepath.Glob(filepath.Join(crdFolder, "*.yaml"))
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return fmt.Errorf("there is none in %s", crdFolder)
	}
	var all []*unstructured.Unstructured
	for _, path := range paths {
		crds, err := readObjects(path)
		if err != nil {
			return err
		}
		for _, crd := range crds {
			// With the last-applied annotation, as kubectl apply would.
			raw, err := crd.MarshalJSON()
			if err != nil {
				return err
			}
			crd.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(raw)})
			strict := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
			if _, err := s.Resource(crdResource).Create(context.Background(), crd, strict); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			all = append(all, crd)
		}
	}
	for _, crd := range all {
		if err := s.waitServed(crd); err != nil {
			return fmt.Errorf("%s: %w", crd.GetName(), err)
		}
	}
	return nil
}

// waitServed waits until objects of a CRD can be created. The server says that a CRD is established a moment before that.
func (s server) waitServed(crd *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(context.Background(), establishing)
	defer cancel()
	if err := s.waitFor(ctx, crdResource, "", crd.GetName(), func(crd *unstructured.Unstructured) bool {
		return conditionStatus(crd, "Established") == "True"
	}); err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(s.config)
	if err != nil {
		return err
	}
	kind := crdspec.Of(crd)
	return wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		for _, version := range kind.ServedVersions() {
			if _, err := s.Resource(version.WithResource(kind.Plural)).List(ctx, metav1.ListOptions{Limit: 1}); apierrors.IsNotFound(err) {
				return false, nil
			} else if err != nil {
				return false, err
			}
		}
		return kind.IsServed(client), nil
	})
}

// waitFor waits until an object is as it should be.
func (s server) waitFor(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, done func(*unstructured.Unstructured) bool) error {
	watcher, err := s.Resource(resource).Namespace(namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String(),
	})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	// A watch without a resource version begins with the object as it is.
	for event := range watcher.ResultChan() {
		if object, ok := event.Object.(*unstructured.Unstructured); ok && event.Type != watch.Deleted && done(object) {
			return nil
		}
	}
	return fmt.Errorf("the watch has ended before that: %w", context.Cause(ctx))
}

func conditionStatus(object *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		if c, ok := condition.(map[string]any); ok && c["type"] == kind {
			return fmt.Sprint(c["status"])
		}
	}
	return ""
}

// kind returns the client for an object's kind in a namespace.
func (s server) kind(t *testing.T, object *unstructured.Unstructured, namespace string) dynamic.ResourceInterface {
	t.Helper()
	resource, known := resources[object.GetAPIVersion()+" "+object.GetKind()]
	if !known {
		t.Fatalf("%s %s is none of our kinds", object.GetAPIVersion(), object.GetKind())
	}
	return s.Resource(resource).Namespace(namespace)
}

// try asks the API server whether it would create an object and as what, without creating it.
func (s server) try(t *testing.T, object *unstructured.Unstructured, namespace string) (*unstructured.Unstructured, error) {
	t.Helper()
	return s.kind(t, object, namespace).Create(t.Context(), object, metav1.CreateOptions{
		FieldValidation: metav1.FieldValidationStrict,
		DryRun:          []string{metav1.DryRunAll},
	})
}

// apply is kubectl apply --server-side with strict validation.
func (s server) apply(t *testing.T, object *unstructured.Unstructured, namespace string) (*unstructured.Unstructured, error) {
	t.Helper()
	raw, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return s.kind(t, object, namespace).Patch(t.Context(), object.GetName(), types.ApplyPatchType, raw, metav1.PatchOptions{
		FieldManager:    fieldOwner,
		FieldValidation: metav1.FieldValidationStrict,
	})
}

// readObjects reads a file of YAML documents.
func readObjects(path string) ([]*unstructured.Unstructured, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for document := range bytes.SplitSeq(raw, []byte("\n---\n")) {
		object, err := parse(string(document))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

func parse(manifest string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := utilyaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		return nil, err
	}
	return object, nil
}

// sample reads an object from the samples.
func sample(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	objects, err := readObjects(filepath.Join(sampleFolder, file))
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 1 {
		t.Fatalf("%s has %d objects", file, len(objects))
	}
	return objects[0]
}

// sampleFiles returns the names of all samples.
func sampleFiles(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(sampleFolder)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".yaml") && entry.Name() != "kustomization.yaml" {
			files = append(files, entry.Name())
		}
	}
	return files
}
