// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/testenv"
)

// fetch gets a path of the API server as JSON, whatever a client would prefer.
func fetch(t *testing.T, client kubernetes.Interface, path string, into any) {
	t.Helper()
	try(t, json.Unmarshal(fetchAs(t, client, path, "application/json"), into))
}

func fetchAs(t *testing.T, client kubernetes.Interface, path, accept string) []byte {
	t.Helper()
	request := client.CoreV1().RESTClient().Get().RequestURI(path).SetHeader("Accept", accept)
	data, err := request.DoRaw(t.Context())
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	return data
}

func TestVersion(t *testing.T) {
	w := newWorld(t)
	version := must(w.Discovery().ServerVersion())(t)
	if version.GitVersion != cluster.KubernetesVersion || version.Major != "1" || version.Minor != "36" {
		t.Errorf("it is %+v, not %s", version, cluster.KubernetesVersion)
	}
}

func TestHealth(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/livez", "/readyz", "/healthz"} {
		if answer := string(fetchAs(t, w, path, "*/*")); answer != "ok" {
			t.Errorf("%s says %q", path, answer)
		}
	}
}

func TestDiscoveryIsAggregated(t *testing.T) {
	w := newWorld(t)
	w.installCRD(t)
	groups := func() map[string]apidiscoveryv2.APIGroupDiscovery {
		data := fetchAs(t, w, "/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		var list apidiscoveryv2.APIGroupDiscoveryList
		try(t, json.Unmarshal(data, &list))
		found := map[string]apidiscoveryv2.APIGroupDiscovery{}
		for _, group := range list.Items {
			found[group.Name] = group
		}
		return found
	}
	apps := groups()["apps"]
	if len(apps.Versions) != 1 || !slices.ContainsFunc(apps.Versions[0].Resources, func(r apidiscoveryv2.APIResourceDiscovery) bool {
		return r.Resource == "deployments" && slices.ContainsFunc(r.Subresources, func(s apidiscoveryv2.APISubresourceDiscovery) bool {
			return s.Subresource == "scale"
		})
	}) {
		t.Errorf("group apps is %+v", apps)
	}
	testenv.Eventually(t, "the CRD's group is found with its subresources", func() error {
		own := groups()[w.boatGroup()]
		if len(own.Versions) == 0 || len(own.Versions[0].Resources) == 0 {
			return errors.New("it is not there")
		}
		return expect("number of subresources", len(own.Versions[0].Resources[0].Subresources), 2)
	})
}

// openAPIV3 is the list of documents by what they are about.
func openAPIV3(t *testing.T, client kubernetes.Interface) map[string]string {
	t.Helper()
	var list struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	fetch(t, client, "/openapi/v3", &list)
	urls := map[string]string{}
	for path, at := range list.Paths {
		urls[path] = at.ServerRelativeURL
	}
	return urls
}

type openAPIDocument struct {
	Paths       map[string]any
	Components  struct{ Schemas map[string]any } // version 3
	Definitions map[string]any                   // version 2
}

// checkOpenAPI compares the documents with each other and with what discovery says the server has.
func checkOpenAPI(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	urls := openAPIV3(t, client)
	_, resources, err := client.Discovery().ServerGroupsAndResources()
	try(t, err)
	schemas := map[string]bool{}
	for _, list := range resources {
		if strings.Contains(list.GroupVersion, ".opdock.dev/") {
			continue // another test's CRD, which may not be in all documents yet
		}
		path := "apis/" + list.GroupVersion
		if list.GroupVersion == "v1" {
			path = "api/v1"
		}
		url, listed := urls[path]
		if !listed {
			t.Errorf("%s is not in the list", path)
			continue
		}
		var document openAPIDocument
		fetch(t, client, url, &document)
		for _, resource := range list.APIResources {
			if resource.Namespaced || strings.Contains(resource.Name, "/") {
				continue
			}
			if _, found := document.Paths["/"+path+"/"+resource.Name]; !found {
				t.Errorf("the document of %s does not tell of %s", path, resource.Name)
			}
		}
		for name := range document.Components.Schemas {
			schemas[name] = true
		}
		if path == "apis/apps/v1" && document.Components.Schemas["io.k8s.api.apps.v1.Deployment"] == nil {
			t.Error("apps/v1 has no Deployment")
		}
	}
	var second openAPIDocument
	fetch(t, client, "/openapi/v2", &second)
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		if second.Definitions[name] == nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 || len(schemas) < 500 || second.Definitions["io.k8s.api.apps.v1.Deployment"] == nil {
		t.Errorf("of %d definitions, version 2 has %d and lacks %q", len(schemas), len(second.Definitions), missing)
	}
	if len(second.Paths) < 300 {
		t.Errorf("version 2 tells of %d paths only", len(second.Paths))
	}
}

// TestOpenAPIIsComplete asks first while no document is built, and then while all are. No other test adds an API to its cluster.
func TestOpenAPIIsComplete(t *testing.T) {
	testenv.ControlPlane(t)
	t.Parallel()
	client := clientFor(t, start(t, cluster.Options{}).Config())
	checkOpenAPI(t, client)
	checkOpenAPI(t, client)
}

func TestOpenAPIKnowsCRDs(t *testing.T) {
	w := newWorld(t)
	// Asked for before there is the CRD, so that what is remembered of it has to be renewed.
	var before openAPIDocument
	fetch(t, w, "/openapi/v2", &before)
	w.installCRD(t)
	path := "apis/" + w.boatGroup() + "/v1"
	testenv.Eventually(t, "version 3 has the CRD", func() error {
		url, listed := openAPIV3(t, w)[path]
		if !listed {
			return errors.New("it is not in the list")
		}
		var document openAPIDocument
		fetch(t, w, url, &document)
		return hasBoat(w, document.Components.Schemas)
	})
	testenv.Eventually(t, "version 2 has the CRD", func() error {
		var document openAPIDocument
		fetch(t, w, "/openapi/v2", &document)
		if document.Definitions["io.k8s.api.apps.v1.Deployment"] == nil {
			return errors.New("it has lost the built-in kinds")
		}
		return hasBoat(w, document.Definitions)
	})
}

func hasBoat(w *world, schemas map[string]any) error {
	words := strings.Split(w.boatGroup(), ".")
	slices.Reverse(words)
	if name := strings.Join(words, ".") + ".v1.Boat"; schemas[name] == nil {
		return fmt.Errorf("%s is not among %d definitions", name, len(schemas))
	}
	return nil
}

func TestEventsAreRecorded(t *testing.T) {
	w := newWorld(t)
	w.startDeployment(t, deployment("web", 1))
	for reason, kind := range map[string]string{"ScalingReplicaSet": "Deployment", "SuccessfulCreate": "ReplicaSet", "Scheduled": "Pod"} {
		testenv.Eventually(t, "an event tells of "+reason, func() error {
			events, err := w.CoreV1().Events(w.namespace).List(t.Context(), metav1.ListOptions{
				FieldSelector: "reason=" + reason + ",involvedObject.kind=" + kind,
			})
			if err == nil && len(events.Items) == 0 {
				err = errors.New("there is none")
			}
			return err
		})
	}
}

// TestWatchGoesOn reads what changed since a list, as every informer does.
func TestWatchGoesOn(t *testing.T) {
	w := newWorld(t)
	all := w.CoreV1().ConfigMaps(w.namespace)
	w.createConfigMap(t, configMap("before"))
	list := must(all.List(t.Context(), metav1.ListOptions{}))(t)
	w.createConfigMap(t, configMap("after"))
	changes := must(all.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: "metadata.name=after"}))(t)
	defer changes.Stop()
	if change := next(t, changes); change.Type != watch.Added {
		t.Errorf("the watch begins with %+v", change)
	}
}
