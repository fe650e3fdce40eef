// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const certificate = `
kind: Certificate.cert-manager.io
after: 2s
status:
  observedGeneration: "{{ .metadata.generation }}"
  conditions:
  - {type: Ready, status: "True", reason: Issued, message: "issued for {{ index .spec.dnsNames 0 }}"}
creates:
- apiVersion: v1
  kind: Secret
  metadata: {name: "{{ .spec.secretName }}"}
  type: kubernetes.io/tls
  stringData: {tls.crt: simulated, tls.key: simulated}
failure:
  percent: 0
  status:
    conditions:
    - {type: Ready, status: "False", reason: Denied}
`

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return o
}

func web(t *testing.T, more string) *unstructured.Unstructured {
	t.Helper()
	return object(t, `{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {namespace: shop, name: web, uid: u1, generation: 3, annotations: {`+
		more+`}}, spec: {secretName: web-tls, dnsNames: [web.example.com]}}`)
}

func TestOutcome(t *testing.T) {
	d, err := Parse(certificate)
	if err != nil {
		t.Fatal(err)
	}
	if d.GroupKind().Group != "cert-manager.io" || d.GroupKind().Kind != "Certificate" || d.After.Duration != 2*time.Second {
		t.Errorf("parsed %+v", d)
	}
	outcome, ok, err := d.Of(web(t, ""), now)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	status, _ := json.Marshal(outcome.Status)
	const want = `{"conditions":[{"lastTransitionTime":"2026-05-04T12:00:00Z","message":"issued for web.example.com","reason":"Issued","status":"True","type":"Ready"}],"observedGeneration":3}`
	if string(status) != want {
		t.Errorf("status is %s,\nwant %s", status, want)
	}
	if len(outcome.Creates) != 1 {
		t.Fatalf("creates %v", outcome.Creates)
	}
	secret := outcome.Creates[0]
	if secret.GetName() != "web-tls" || secret.GetNamespace() != "shop" || secret.GetOwnerReferences()[0].UID != "u1" {
		t.Errorf("creates %v", secret.Object)
	}
}

func TestTransitionTimeStays(t *testing.T) {
	d, err := Parse(certificate)
	if err != nil {
		t.Fatal(err)
	}
	before := web(t, "")
	_ = unstructured.SetNestedSlice(before.Object, []any{map[string]any{
		"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z",
	}}, "status", "conditions")
	outcome, _, err := d.Of(before, now)
	if err != nil {
		t.Fatal(err)
	}
	if got := outcome.Status["conditions"].([]any)[0].(map[string]any)["lastTransitionTime"]; got != "2026-01-01T00:00:00Z" {
		t.Errorf("transition at %v", got)
	}
}

func TestFailures(t *testing.T) {
	d, err := Parse(strings.Replace(certificate, "percent: 0", "percent: 100", 1))
	if err != nil {
		t.Fatal(err)
	}
	reason := func(annotation string) string {
		outcome, ok, err := d.Of(web(t, annotation), now)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return "nothing"
		}
		return outcome.Status["conditions"].([]any)[0].(map[string]any)["reason"].(string)
	}
	for annotation, want := range map[string]string{
		"": "Denied", Annotation + ": succeed": "Issued", Annotation + ": fail": "Denied", Annotation + ": ignore": "nothing",
	} {
		if got := reason(annotation); got != want {
			t.Errorf("%q: got %s, want %s", annotation, got, want)
		}
	}
}

func TestAnnotationThatIsNotKnown(t *testing.T) {
	d := Definition{Kind: "Certificate.cert-manager.io", Status: map[string]any{"ready": true}}
	_, ok, err := d.Of(web(t, Annotation+": banana"), time.Now())
	if ok || err == nil || !strings.Contains(err.Error(), `"banana"; it can be fail, succeed or ignore`) {
		t.Errorf("got %v, %v", ok, err)
	}
}

func TestBadDefinitions(t *testing.T) {
	for text, says := range map[string]string{
		"status: {a: b}": "kind is missing",
		"kind: A.b":      "neither status nor creates",
		"{kind: A.b, status: {a: b}, after: -1s}":              "negative",
		"{kind: A.b, status: {a: b}, speed: 1}":                "speed",
		"{kind: A.b, creates: [{kind: Secret}]}":               "apiVersion",
		"{kind: A.b, status: {a: '{{ .x'}}":                    "a:",
		"{kind: A.b, status: {a: b}, failure: {percent: 101}}": "between 0 and 100",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q", text, err, says)
		}
	}
	d, err := Parse("{kind: A.b, status: {a: '{{ .spec.missing.field }}'}}")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Of(web(t, ""), now); err == nil {
		t.Error("a field that is not there was found")
	}
}
