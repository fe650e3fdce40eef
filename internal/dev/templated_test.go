// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/testenv"
)

// Webhooks that only a chart configures are not called, which must not go unnoticed.
func TestWebhooksOfAChartAreNamed(t *testing.T) {
	dir := t.TempDir()
	testenv.WriteFiles(t, dir, map[string]string{
		"go.mod": "module example.com/crew\n", "charts/crew/Chart.yaml": "name: crew\n", "charts/crew/templates/webhook.yaml": "kind: MutatingWebhookConfiguration\n",
	})
	found, err := project.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	s := &Session{Options: Options{Project: found, Cluster: Cluster{CallsBack: true}, Screen: sayOnly(func(text string) { said = append(said, text) })}}
	for range 2 {
		s.sayTemplated()
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], "charts/crew/templates/webhook.yaml has webhook configurations") ||
		!strings.HasSuffix(said[0], "helm template -n NAMESPACE crew charts/crew > deploy/crew.yaml") {
		t.Errorf("it says %q", said)
	}
	said = nil
	s.toldOnce, s.manifests.webhooks = nil, []*unstructured.Unstructured{{}}
	s.sayTemplated()
	if len(said) > 0 {
		t.Errorf("with manifests of its own: %q", said)
	}
}
