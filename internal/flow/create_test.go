// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	appv1 "github.com/opdock/opdock/api/app/v1"
	robotv1 "github.com/opdock/opdock/api/robot/v1"
)

func TestFieldsThatTheGoTypeLoses(t *testing.T) {
	for _, test := range []struct {
		object        client.Object
		configuration string
		want          bool
	}{
		{&robotv1.Robot{}, `{spec: {replicas: 1, deploymentName: a}}`, false},
		{&robotv1.Robot{}, `{spec: {replicas: 0}}`, false}, // a pointer
		{&robotv1.Robot{}, `{spec: {suspend: true}}`, false},
		{&robotv1.Robot{}, `{spec: {suspend: false}}`, true},
		{&robotv1.Robot{}, `{spec: {deploymentName: ""}}`, true},
		{&appv1.AppService{}, `{spec: {image: i, envs: [{name: A, value: a}]}}`, false},
		{&appv1.AppService{}, `{spec: {image: i, envs: [{name: A, value: a}, {name: B, value: ""}]}}`, true},
		{&appv1.AppService{}, `{spec: {image: i, envs: []}}`, true},
		{&appv1.AppService{}, `{spec: {image: i, minReadySeconds: 0}}`, true},
		{&appv1.AppService{}, `{spec: {image: i, networkPolicy: {}}}`, false}, // a pointer
	} {
		var content map[string]any
		if err := yaml.Unmarshal([]byte(test.configuration), &content); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, test.object); err != nil {
			t.Fatal(err)
		}
		if got := losesFields(test.object, content); got != test.want {
			t.Errorf("%s: got %v", test.configuration, got)
		}
	}
}

// Admission changes the label of all ConfigMaps, so no cache gets the next one either.
func TestAHiddenChildIsAppliedWithoutWaiting(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		applied := false
		server := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(_ context.Context, _ client.WithWatch, _ client.Object, _ client.Patch, options ...client.PatchOption) error {
				applied = true
				if got := (&client.PatchOptions{}).ApplyOptions(options); got.DisableReadYourWritesConsistency != hidden || got.FieldManager != "us" {
					t.Errorf("hidden is %v, and the options are %+v", hidden, got)
				}
				return nil
			},
		}).Build()
		pass := &Pass{owner: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n"}}, fieldOwner: "us", client: server, reader: server, own: &ownWrites{}}
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}}
		if hidden {
			pass.own.hides(child)
		}
		if err := pass.createByApply(t.Context(), child, child.Name, []byte("{}")); err != nil || !applied {
			t.Errorf("got %v", err)
		}
	}
}

// TestAChildThatIsDeletedAgainAndAgain is fought for like one that is changed.
func TestAChildThatIsDeletedAgainAndAgain(t *testing.T) {
	created := 0
	server := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			created++
			return nil
		},
	}).Build()
	owner := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", UID: "o"}}
	pass := &Pass{owner: owner, client: server, reader: server, own: &ownWrites{}, contests: &contests{}, now: time.Unix(1000, 0)}
	wanted := &desired{name: "c", kind: "ConfigMap", hash: "h", content: map[string]any{"metadata": map[string]any{"name": "c", "namespace": "n", "labels": map[string]any{LabelManagedBy: "opdock"}}}}
	var err error
	for range contestAfter + 5 {
		if err = pass.create(t.Context(), &corev1.ConfigMap{}, wanted); err != nil {
			break
		}
	}
	if Reason(err) != ReasonContested || created != contestAfter || !strings.Contains(err.Error(), "ConfigMap c is deleted again each time it is created, 16 times so far") {
		t.Errorf("it was created %d times: %v", created, err)
	}
	pass.now = pass.now.Add(time.Hour)
	if err := pass.create(t.Context(), &corev1.ConfigMap{}, wanted); err != nil {
		t.Errorf("after the rival has given up: %v", err)
	}
}

// TestAConfigurationOfAnotherType is sent, so that the server says what is wrong with it.
func TestAConfigurationOfAnotherType(t *testing.T) {
	refusal := apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "c", nil)
	server := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
			if object.GetName() != "c" || object.GetNamespace() != "n" {
				t.Errorf("applied is %s/%s", object.GetNamespace(), object.GetName())
			}
			return refusal
		},
	}).Build()
	pass := &Pass{owner: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n"}}, client: server, reader: server, own: &ownWrites{}, contests: &contests{}}
	wanted := &desired{name: "c", kind: "ConfigMap", content: map[string]any{"metadata": map[string]any{"name": "c", "namespace": "n"}, "data": map[string]any{"a": map[string]any{}}}}
	if err := pass.create(t.Context(), &corev1.ConfigMap{}, wanted); !IsStalled(err) || !strings.Contains(err.Error(), "is invalid") {
		t.Errorf("got %v", err)
	}
}
