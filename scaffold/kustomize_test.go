// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func built(t *testing.T, dir, folder string) string {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(dir, folder))
	if err != nil {
		t.Fatalf("building %s: %v", folder, err)
	}
	content, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestManifestsCanBeBuilt(t *testing.T) {
	dir := t.TempDir()
	must(t)(Init(inits(dir)))
	if got := built(t, dir, "config/default"); !strings.Contains(got, "name: yard-controller-manager") {
		t.Errorf("got\n%s", got)
	}
	for _, folder := range []string{"config/prometheus", "config/network-policy"} {
		built(t, dir, folder)
	}
	must(t)(CreateAPI(frigate(dir)))
	second := frigate(dir)
	second.Version = "v2"
	must(t)(CreateAPI(second))
	conversion := WebhookOptions{Dir: dir, Group: "ship", Version: "v1", Kind: "Frigate", Conversion: true}
	generated(t, must(t)(CreateWebhook(conversion)))
	if got := built(t, dir, "config/default"); strings.Contains(got, "WebhookConfiguration\n") || !strings.Contains(got, "strategy: Webhook") {
		t.Errorf("with conversion alone, it is\n%s", got)
	}
	admission := conversion
	admission.Conversion, admission.Defaulting, admission.Validation = false, true, true
	generated(t, must(t)(CreateWebhook(admission)))
	got := built(t, dir, "config/default")
	for _, want := range []string{
		"name: yard-frigate-viewer-role",
		"yard-webhook-service.yard-system.svc\n",
		"yard-webhook-service.yard-system.svc.cluster.local\n",
		"          name: yard-webhook-service\n          namespace: yard-system\n          path: /convert\n",
		"      name: yard-webhook-service\n      namespace: yard-system\n      path: /mutate-ship-example-com-v1-frigate\n",
		"      name: yard-webhook-service\n      namespace: yard-system\n      path: /validate-ship-example-com-v1-frigate\n",
		"--webhook-cert-path=",
		"--metrics-bind-address=:8443",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q", want)
		}
	}
	// Of the CRD and of both webhook configurations.
	if count := strings.Count(got, "cert-manager.io/inject-ca-from: yard-system/yard-serving-cert"); count != 3 {
		t.Errorf("the certificate is injected %d times", count)
	}
	if strings.Contains(got, "SERVICE_NAME") || strings.Contains(got, "NAMESPACE/NAME") {
		t.Error("a name was not filled in")
	}
	got = built(t, dir, "config/samples")
	for _, name := range []string{"frigate-sample\n", "frigate-sample-v2\n"} {
		if strings.Count(got, "  name: "+name) != 1 {
			t.Errorf("there should be one sample called %sin\n%s", name, got)
		}
	}
}
