// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/freeport"
)

// freeAddress returns an address that no process listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// token is that of a new service account, which gets a cluster role unless the role's name is empty.
func token(t *testing.T, c client.Client, name, role string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, GenerateName: name + "-"}}
	if err := c.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	if role != "" {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: account.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: systemNamespace, Name: account.Name}},
		}
		if err := c.Create(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
		// The account goes with its namespace.
		t.Cleanup(func() {
			if err := c.Delete(context.WithoutCancel(t.Context()), binding); err != nil {
				t.Error(err)
			}
		})
	}
	request := &authenticationv1.TokenRequest{}
	if err := c.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// scrape returns the status of a request for the metrics, with a token or without.
func scrape(t *testing.T, address, token string) int {
	t.Helper()
	status, _ := get(t, "https://"+address+"/metrics", token)
	return status
}

func get(t *testing.T, url, token string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The manager's certificate is self-signed.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func conditionsOf(object *unstructured.Unstructured) ([]metav1.Condition, error) {
	var typed struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed)
	return typed.Status.Conditions, err
}
