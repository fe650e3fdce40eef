// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
