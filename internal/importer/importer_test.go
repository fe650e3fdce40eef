// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/testenv"
)

func object(t *testing.T, resource, manifest string) Object {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(manifest), &content); err != nil {
		t.Fatalf("%v in %s", err, manifest)
	}
	return Object{Resource: schema.ParseGroupResource(resource), Unstructured: &unstructured.Unstructured{Object: content}}
}

// names returns what is imported, as resource and name.
func names(objects []Object) []string {
	var all []string
	for _, o := range objects {
		all = append(all, o.Resource.String()+" "+strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))
	}
	slices.Sort(all)
	return all
}

func prepare(t *testing.T, read []Object, o Options, report *Report) []Object {
	t.Helper()
	kept, err := Prepare(read, o, report)
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

func TestWhatIsImported(t *testing.T) {
	all := func(t *testing.T) []Object {
		t.Helper()
		return []Object{
			object(t, "namespaces", `{apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: n1}}`),
			object(t, "namespaces", `{apiVersion: v1, kind: Namespace, metadata: {name: other, uid: n2}}`),
			object(t, "namespaces", `{apiVersion: v1, kind: Namespace, metadata: {name: kube-system, uid: n3}}`),
			object(t, "configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: prices, uid: c1}}`),
			object(t, "configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: kube-root-ca.crt, uid: c2}}`),
			object(t, "configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: other, name: prices, uid: c3}}`),
			object(t, "configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: kube-system, name: kubeadm, uid: c4}}`),
			object(t, "events", `{apiVersion: v1, kind: Event, metadata: {namespace: shop, name: e, uid: e1}}`),
			object(t, "leases.coordination.k8s.io", `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: shop, name: leader, uid: l1}}`),
			object(t, "pods.metrics.k8s.io", `{apiVersion: metrics.k8s.io/v1beta1, kind: PodMetrics, metadata: {namespace: shop, name: m, uid: m1}}`),
			object(t, "clusterroles.rbac.authorization.k8s.io", `{metadata: {name: view, uid: r1, labels: {kubernetes.io/bootstrapping: rbac-defaults}}}`),
			object(t, "clusterroles.rbac.authorization.k8s.io", `{metadata: {name: mine, uid: r2}}`),
			object(t, "secrets", `{type: kubernetes.io/service-account-token, metadata: {namespace: shop, name: token, uid: s1}}`),
			object(t, "pods", `{metadata: {namespace: shop, name: static, uid: p1, annotations: {kubernetes.io/config.mirror: x}}}`),
			object(t, "validatingwebhookconfigurations.admissionregistration.k8s.io",
				`{metadata: {name: outside, uid: w1}, webhooks: [{clientConfig: {service: {name: x, namespace: y}}}]}`),
			object(t, "mutatingwebhookconfigurations.admissionregistration.k8s.io",
				`{metadata: {name: elsewhere, uid: w2}, webhooks: [{clientConfig: {url: "https://10.0.0.1/"}}]}`),
			object(t, "mutatingwebhookconfigurations.admissionregistration.k8s.io",
				`{metadata: {name: here, uid: w3}, webhooks: [{clientConfig: {url: "https://127.0.0.1:9443/"}}]}`),
			object(t, "storageclasses.storage.k8s.io", `{metadata: {name: fast, uid: sc1}}`),
			object(t, "persistentvolumes", `{metadata: {name: used, uid: v1}}`),
			object(t, "persistentvolumes", `{metadata: {name: unused, uid: v2}}`),
			object(t, "persistentvolumeclaims", `{metadata: {namespace: shop, name: data, uid: pc1}, spec: {volumeName: used}}`),
		}
	}
	for name, test := range map[string]struct {
		options Options
		want    []string
	}{
		"all": {want: []string{
			"clusterroles.rbac.authorization.k8s.io mine", "configmaps other/prices", "configmaps shop/prices",
			"mutatingwebhookconfigurations.admissionregistration.k8s.io here", "namespaces other", "namespaces shop",
			"persistentvolumeclaims shop/data", "persistentvolumes unused", "persistentvolumes used", "storageclasses.storage.k8s.io fast",
		}},
		"one namespace": {options: Options{Namespaces: []string{"shop"}}, want: []string{
			"configmaps shop/prices", "namespaces shop", "persistentvolumeclaims shop/data", "persistentvolumes used", "storageclasses.storage.k8s.io fast",
		}},
		"one of the system": {options: Options{Namespaces: []string{"kube-system"}}, want: []string{
			"configmaps kube-system/kubeadm", "namespaces kube-system", "storageclasses.storage.k8s.io fast",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			read := all(t)
			report := newReport()
			kept := prepare(t, read, test.options, report)
			if got := names(kept); !slices.Equal(got, test.want) {
				t.Errorf("got %q,\nwant %q", got, test.want)
			}
			left := 0
			for _, number := range report.LeftOut {
				left += number
			}
			if report.Objects != len(kept) || (name == "all" && left+len(kept) != len(read)) {
				t.Errorf("the report accounts for %d and %d of %d: %+v", len(kept), left, len(read), report)
			}
		})
	}
}

func TestWhatIsChanged(t *testing.T) {
	secret := func() Object {
		return object(t, "secrets", `{apiVersion: v1, kind: Secret, type: kubernetes.io/dockerconfigjson, metadata: {namespace: shop, name: pull, uid: s1,
			annotations: {kubectl.kubernetes.io/last-applied-configuration: "{secret}", keep: me}}, data: {.dockerconfigjson: c2VjcmV0, other: c2VjcmV0}, stringData: {x: secret}}`)
	}
	report := newReport()
	kept := prepare(t, []Object{
		secret(),
		object(t, "pods", `{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: web, uid: p1, resourceVersion: "7",
			ownerReferences: [{name: here, uid: rs1}, {name: gone, uid: x}]}, spec: {nodeName: worker-1}, status: {phase: Running}}`),
		object(t, "replicasets.apps", `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {namespace: shop, name: here, uid: rs1, generation: 3}}`),
		object(t, crdResource.String(), `{metadata: {name: ships.sea.example.com, uid: crd1}, spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: x}}}}}}`),
		object(t, "configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: manifest}}`),
		object(t, "namespaces", `{apiVersion: v1, kind: Namespace, metadata: {name: new, labels: {keep: me}}}`),
	}, Options{}, report)
	by := map[string]Object{}
	for _, o := range kept {
		by[o.GetName()] = o
	}
	text, err := json.Marshal(by["pull"].Object)
	if err != nil || strings.Contains(string(text), "secret}") || strings.Contains(string(text), "c2VjcmV0") || strings.Contains(string(text), "stringData") {
		t.Errorf("the Secret still says %s, %v", text, err)
	}
	if by["pull"].GetAnnotations()["keep"] != "me" {
		t.Errorf("annotations are %v", by["pull"].GetAnnotations())
	}
	web := by["web"]
	if owners := web.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != "rs1" {
		t.Errorf("owners are %v", owners)
	}
	if web.GetUID() != "p1" || web.GetResourceVersion() != "" || stringAt(web, "status", "phase") != "Running" || fmt.Sprint(by["here"].Object["metadata"].(map[string]any)["generation"]) != "3" {
		t.Errorf("the pod is %v", web.Object)
	}
	if stringAt(by["ships.sea.example.com"], "spec", "conversion", "strategy") != "None" {
		t.Errorf("the CRD is %v", by["ships.sea.example.com"].Object)
	}
	if by["manifest"].GetUID() == "" || stringAt(by["manifest"], "metadata", "creationTimestamp") == "" {
		t.Errorf("the manifest is %v", by["manifest"].Object)
	}
	for _, name := range []string{"new", "shop"} {
		finalizers, _, _ := unstructured.NestedStringSlice(by[name].Object, "spec", "finalizers")
		if !slices.Equal(finalizers, []string{"kubernetes"}) || by[name].GetLabels()["kubernetes.io/metadata.name"] != name {
			t.Errorf("the namespace is %v", by[name].Object)
		}
	}
	if by["new"].GetLabels()["keep"] != "me" {
		t.Errorf("labels are %v", by["new"].GetLabels())
	}
	if by["worker-1"].Resource != nodeResource || by["shop"].Resource != namespaceResource {
		t.Errorf("imported %q", names(kept))
	}
	if len(report.Changed) != 4 {
		t.Errorf("reported %q", Lines(report.Changed))
	}
	kept = prepare(t, []Object{secret()}, Options{WithSecrets: true}, newReport())
	if data, _, _ := unstructured.NestedStringMap(kept[0].Object, "data"); data["other"] != "c2VjcmV0" {
		t.Errorf("with secrets: %v", data)
	}
}

func TestDumps(t *testing.T) {
	folder := t.TempDir()
	testenv.WriteFiles(t, folder, map[string]string{
		"a/list.yaml":    "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: one}}\n- {apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {namespace: shop, name: two}}\n",
		"a/typed.json":   `{"apiVersion":"v1","kind":"ConfigMapList","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"three"}}]}`,
		"b/ship.yml":     "apiVersion: sea.example.com/v1\nkind: Ship\nmetadata: {name: ada}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: shop, name: one}\n",
		"b/crd.yaml":     "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: shipz.sea.example.com}\nspec: {group: sea.example.com, scope: Cluster, names: {kind: Ship, plural: shipz}}\n",
		"logs/pod.log":   "kind: not read",
		"broken.yaml":    "{",
		"no-object.json": `{"a": 1}`,
	})
	read, report, err := FromFiles(t.Context(), folder, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"configmaps shop/one", "configmaps shop/three", "customresourcedefinitions.apiextensions.k8s.io shipz.sea.example.com",
		"ingresses.networking.k8s.io shop/two", "shipz.sea.example.com ada",
	}
	if got := names(read); !slices.Equal(got, want) {
		t.Errorf("got %q,\nwant %q", got, want)
	}
	if !slices.Equal(report.Unreadable, []string{"broken.yaml"}) {
		t.Errorf("unreadable: %v", report.Unreadable)
	}
	if some, _, err := FromFiles(t.Context(), folder, Options{Kinds: []string{"ingress"}}); err != nil || len(some) != 2 { // and the CRD
		t.Errorf("by kind: %q, %v", names(some), err)
	}
	if _, _, err := FromFiles(t.Context(), filepath.Join(folder, "logs"), Options{}); err == nil || !strings.Contains(err.Error(), "no file in") {
		t.Errorf("a folder without objects: %v", err)
	}
	if _, _, err := FromFiles(t.Context(), filepath.Join(folder, "missing"), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestBadDumps(t *testing.T) {
	list := "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: one\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: two\nkind: List\n"
	before := func(text string) string { start, _, _ := strings.Cut(list, text); return start }
	inJSON := `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}, {"apiVersion": "v1"}]}`
	for name, test := range map[string]struct{ content, says string }{
		"empty":                  {"", "has no objects in it"},
		"no object":              {`{"a": 1}`, "has no objects in it"},
		"broken":                 {"{", "cut off"},
		"text":                   {"hello\nworld\n", "cannot unmarshal"},
		"cut between two items":  {list[:strings.LastIndex(list, "- ")], "cut off"},
		"cut in an item":         {before("two"), "cut off"},
		"cut before the kind":    {before("kind: List"), "cut off"},
		"cut JSON":               {inJSON[:len(inJSON)/2], "cut off"},
		"cut JSON at its end":    {inJSON[:len(inJSON)-1], "cut off"},
		"an archive":             {"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xed\xbd", "unpack"},
		"a program":              {"\x7fELF\x02\x01\x01\x00\x00", "binary"},
		"cut in a 2nd document":  {"{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}\n---\n" + before("kind: List"), "cut off"},
		"control characters":     {"kind: \x01\n", "control characters"},
		"a List that is no list": {"apiVersion: v1\nkind: List\nitems: one\n", "has no objects in it"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "dump.yaml")
			if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			read, _, err := FromFiles(t.Context(), path, Options{})
			if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %q and %v, want an error with %q", names(read), err, test.says)
			}
			// It does not help that the file is in a folder.
			if read, _, err := FromFiles(t.Context(), folder, Options{}); err == nil || !strings.Contains(err.Error(), "no file in "+folder) {
				t.Errorf("in a folder: got %q and %v", names(read), err)
			}
		})
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "objects")
	err := Write(path, []Object{
		object(t, "nodes", `{apiVersion: v1, kind: Node, metadata: {name: worker}}`),
		object(t, "ships.sea.example.com", `{apiVersion: sea.example.com/v1, kind: Ship, metadata: {name: ada}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var lines []string
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		lines = append(lines, scanner.Text())
	}
	want := []string{
		"opdock-objects/1", `{"objects":2,"nodes":1}`,
		`{"resource":"nodes","object":{"apiVersion":"v1","kind":"Node","metadata":{"name":"worker"}}}`,
		`{"group":"sea.example.com","resource":"ships","object":{"apiVersion":"sea.example.com/v1","kind":"Ship","metadata":{"name":"ada"}}}`,
	}
	if fmt.Sprint(lines) != fmt.Sprint(want) {
		t.Errorf("got %q,\nwant %q", lines, want)
	}
	if info, err := file.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}
