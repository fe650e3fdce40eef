// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opdock/opdock/internal/testenv"
)

// TestAggregatedAPIServerOnThisMachine follows the recipe in docs/clusters.md.
func TestAggregatedAPIServerOnThisMachine(t *testing.T) {
	w := newWorld(t)
	group := w.namespace + ".weather.example.com"
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/apis/" + group + "/v1":
			_ = json.NewEncoder(out).Encode(metav1.APIResourceList{
				TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: group + "/v1",
				APIResources: []metav1.APIResource{{Name: "storms", SingularName: "storm", Kind: "Storm", Namespaced: false, Verbs: metav1.Verbs{"get", "list"}}},
			})
		case "/apis/" + group + "/v1/storms/ada":
			// Who asks is in headers that only the API server can set.
			fmt.Fprintf(out, `{"kind":"Storm","apiVersion":%q,"metadata":{"name":"ada"},"asked":%q}`, group+"/v1", r.Header.Get("X-Remote-User"))
		default:
			http.NotFound(out, r)
		}
	}))
	defer server.Close()
	port := int32(server.Listener.Addr().(*net.TCPAddr).Port) //nolint:gosec // a port
	must(w.CoreV1().Services(w.namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "weather"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: "localhost", Ports: []corev1.ServicePort{{Port: port}},
		},
	}, metav1.CreateOptions{}))(t)
	services := w.dynamic.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	must(services.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1." + group},
		"spec": map[string]any{
			"group": group, "version": "v1", "insecureSkipTLSVerify": true, "groupPriorityMinimum": int64(1000), "versionPriority": int64(10),
			"service": map[string]any{"namespace": w.namespace, "name": "weather", "port": int64(port)},
		},
	}}, metav1.CreateOptions{}))(t)
	defer func() { _ = services.Delete(t.Context(), "v1."+group, metav1.DeleteOptions{}) }()
	testenv.Eventually(t, "the API server asks the other one", func() error {
		data, err := w.CoreV1().RESTClient().Get().AbsPath("/apis/" + group + "/v1/storms/ada").DoRaw(t.Context())
		if err != nil {
			return err
		}
		if !strings.Contains(string(data), `"asked":"kubernetes-admin"`) {
			return fmt.Errorf("it answers %s", data)
		}
		return nil
	})
}
