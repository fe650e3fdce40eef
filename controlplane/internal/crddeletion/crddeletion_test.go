// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package crddeletion

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func crd(deleted bool, conditions ...apiextensionsv1.CustomResourceDefinitionCondition) *apiextensionsv1.CustomResourceDefinition {
	result := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "ships.sea.example.com", UID: "1-2", ResourceVersion: "7"},
		Status:     apiextensionsv1.CustomResourceDefinitionStatus{Conditions: conditions},
	}
	if deleted {
		result.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	return result
}

func terminating(status apiextensionsv1.ConditionStatus, reason string) apiextensionsv1.CustomResourceDefinitionCondition {
	return apiextensionsv1.CustomResourceDefinitionCondition{Type: apiextensionsv1.Terminating, Status: status, Reason: reason}
}

func TestHasFailed(t *testing.T) {
	for name, test := range map[string]struct {
		crd      *apiextensionsv1.CustomResourceDefinition
		expected bool
	}{
		"it is not being deleted":          {crd(false, terminating("True", "InstanceDeletionFailed")), false},
		"there is no attempt yet":          {crd(true), false},
		"the attempt is under way":         {crd(true, terminating("True", "InstanceDeletionInProgress")), false},
		"objects are still there":          {crd(true, terminating("True", "InstanceDeletionCheck")), false},
		"the attempt failed":               {crd(true, terminating("True", "InstanceDeletionFailed")), true},
		"another attempt succeeded":        {crd(true, terminating("False", "InstanceDeletionCompleted")), false},
		"it failed for names, not objects": {crd(true, apiextensionsv1.CustomResourceDefinitionCondition{Type: apiextensionsv1.NamesAccepted, Status: "True", Reason: "InstanceDeletionFailed"}), false},
	} {
		if got := hasFailed(test.crd); got != test.expected {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The server here has one CRD whose deletion has failed and stays so until it is changed.
func TestAFailedDeletionIsResumed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var patches atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case request.Method == http.MethodPatch:
			if !strings.HasSuffix(request.URL.Path, "/customresourcedefinitions/ships.sea.example.com") {
				t.Errorf("it changes %s", request.URL.Path)
			}
			if patches.Add(1) == 2 { // the first one did not help
				cancel()
			}
			_ = json.NewEncoder(w).Encode(crd(true))
		case request.URL.Query().Get("watch") != "" && request.URL.Query().Get("sendInitialEvents") != "":
			// An older server, which must be asked for a list.
			http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`, http.StatusUnprocessableEntity)
		case request.URL.Query().Get("watch") != "":
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-ctx.Done()
		default:
			_ = json.NewEncoder(w).Encode(&apiextensionsv1.CustomResourceDefinitionList{
				TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinitionList"},
				ListMeta: metav1.ListMeta{ResourceVersion: "7"},
				Items:    []apiextensionsv1.CustomResourceDefinition{*crd(true, terminating("True", "InstanceDeletionFailed"))},
			})
		}
	}))
	t.Cleanup(server.Close)
	if err := Run(ctx, &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}); err != nil {
		t.Fatal(err)
	}
	if got := patches.Load(); got != 2 {
		t.Errorf("it was changed %d times", got)
	}
}
