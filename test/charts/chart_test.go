// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const namespace = "opdock-system"

// TestTheChartIsTheKustomization compares both object by object.
func TestTheChartIsTheKustomization(t *testing.T) {
	compare(t, kustomize(t, "../../config/default"), helm(t, nil))
}

func TestMonitoringIsTheSame(t *testing.T) {
	with := helm(t, map[string]any{
		"prometheus": map[string]any{"enabled": true}, "grafana": map[string]any{"enabled": true}, "certManager": map[string]any{"enabled": true},
	})
	for name := range helm(t, nil) {
		delete(with, name)
	}
	expected := kustomize(t, "../../config/prometheus")
	maps.Copy(expected, kustomize(t, "../../config/grafana"))
	maps.Copy(expected, kustomize(t, "../../config/certmanager"))
	compare(t, expected, with)
}

// TestNoTokenForStrangers makes sure that Prometheus sends its token to the manager only: the certificate is verified, its
// name is the one that is issued, and the CA comes from the Secret that the manager serves from.
func TestNoTokenForStrangers(t *testing.T) {
	all := kustomize(t, "../../config/prometheus")
	maps.Copy(all, kustomize(t, "../../config/certmanager"))
	endpoints, _, _ := unstructured.NestedSlice(all["ServiceMonitor opdock-system/opdock-metrics"].Object, "spec", "endpoints")
	tls := endpoints[0].(map[string]any)["tlsConfig"].(map[string]any)
	if tls["insecureSkipVerify"] != nil {
		t.Error("the certificate is not verified")
	}
	certificate := all["Certificate opdock-system/opdock-metrics"].Object["spec"].(map[string]any)
	secret := tls["ca"].(map[string]any)["secret"].(map[string]any)["name"]
	if !slices.Contains(certificate["dnsNames"].([]any), tls["serverName"]) || certificate["secretName"] != secret {
		t.Errorf("the certificate is %v, and Prometheus expects %v", certificate, tls)
	}
	deployment, err := json.Marshal(kustomize(t, "../../config/default")["Deployment opdock-system/opdock-manager"])
	if err != nil {
		t.Fatal(err)
	}
	if mounted := fmt.Sprintf(`"secretName":%q`, secret); !bytes.Contains(deployment, []byte(mounted)) {
		t.Errorf("the manager does not mount it: %s", deployment)
	}
}

func TestLimitsAreTheSame(t *testing.T) {
	with := helm(t, map[string]any{"limits": map[string]any{"enabled": true}})
	for name := range helm(t, nil) {
		delete(with, name)
	}
	compare(t, kustomize(t, "../../config/limits"), with)
}

// TestLimitsCanBeSet looks at what values make of the policy's settings.
func TestLimitsCanBeSet(t *testing.T) {
	with := helm(t, map[string]any{"limits": map[string]any{
		"enabled": true, "hostAccess": "Allow", "adoption": "Allow", "serviceAccounts": []any{"default", "web-*"}, "secrets": []any{},
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"limits": "on"}},
	}})
	settings, _, _ := unstructured.NestedStringMap(with["ConfigMap opdock-system/opdock-limits"].Object, "data")
	if settings["hostAccess"] != "Allow" || settings["adoption"] != "Allow" || settings["privileged"] != "Deny" || settings["serviceAccounts"] != "default,web-*" || settings["secrets"] != "" {
		t.Errorf("the settings are %v", settings)
	}
	selector, _, _ := unstructured.NestedString(with["ValidatingAdmissionPolicyBinding /opdock-limits"].Object,
		"spec", "matchResources", "namespaceSelector", "matchLabels", "limits")
	if selector != "on" {
		t.Error("the limits hold in all namespaces")
	}
}

// TestTagsThatLookLikeNumbers gives tags as helm reads them from --set and from a file.
func TestTagsThatLookLikeNumbers(t *testing.T) {
	for want, tag := range map[string]any{
		"1": int64(1), "20260101": float64(20260101), "v1": "v1", "1.10": "1.10", "007": "007",
	} {
		deployment := helm(t, map[string]any{"image": map[string]any{"tag": tag}})["Deployment opdock-system/opdock-manager"]
		containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
		if got := containers[0].(map[string]any)["image"]; got != "opdock-manager:"+want {
			t.Errorf("%v (%T) makes %v", tag, tag, got)
		}
	}
}

// TestAListOfNamespacesLimitsTheRights looks for the rights that are left in the whole cluster.
func TestAListOfNamespacesLimitsTheRights(t *testing.T) {
	rendered := helm(t, map[string]any{"namespaces": []any{"a", "b"}})
	everywhere := rules(t, kustomize(t, "../../config/default")["ClusterRole /opdock-manager-role"])
	left := rules(t, rendered["ClusterRole /opdock-manager-role"])
	if len(left) != 1 || !strings.Contains(left[0], "customresourcedefinitions") {
		t.Errorf("in the whole cluster the manager may still %s", left)
	}
	for _, name := range []string{"a", "b"} {
		granted := append(rules(t, rendered["Role "+name+"/opdock-manager-role"]), left...)
		if slices.Sort(granted); !slices.Equal(granted, everywhere) {
			t.Errorf("in namespace %s the manager may\n%s\ninstead of\n%s", name, granted, everywhere)
		}
		if rendered["RoleBinding "+name+"/opdock-manager-rolebinding"] == nil {
			t.Errorf("the role is not bound in namespace %s", name)
		}
	}
	deployment, err := json.Marshal(rendered["Deployment opdock-system/opdock-manager"])
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(deployment, []byte("--namespaces=a,b")) {
		t.Errorf("the manager does not know of the namespaces: %s", deployment)
	}
}

// TestEveryValueIsUsed turns everything the other way round, and expects of each that it shows.
func TestEveryValueIsUsed(t *testing.T) {
	base := fmt.Sprint(helm(t, nil))
	for name, values := range map[string]map[string]any{
		"image":           {"image": map[string]any{"repository": "elsewhere/manager", "tag": "v9", "pullPolicy": "Always"}},
		"pull secrets":    {"imagePullSecrets": []any{map[string]any{"name": "secret"}}},
		"kinds":           {"kinds": []any{"appservice"}},
		"arguments":       {"extraArgs": []any{"--concurrency=2"}},
		"replicas":        {"replicas": 2},
		"leader election": {"leaderElection": false},
		"resources":       {"resources": map[string]any{"limits": map[string]any{"memory": "1Gi"}}},
		"nodes":           {"nodeSelector": map[string]any{"a": "b"}},
		"tolerations":     {"tolerations": []any{map[string]any{"operator": "Exists"}}},
		"affinity":        {"affinity": map[string]any{"nodeAffinity": map[string]any{}}},
		"priority":        {"priorityClassName": "high"},
		"annotations":     {"podAnnotations": map[string]any{"a": "b"}},
		"labels":          {"podLabels": map[string]any{"a": "b"}},
		"account":         {"serviceAccount": map[string]any{"annotations": map[string]any{"a": "b"}}},
		"CRDs":            {"crds": map[string]any{"enabled": false}},
		"user roles":      {"userRoles": map[string]any{"enabled": false}},
		"metrics":         {"metrics": map[string]any{"enabled": false}},
		"network policy":  {"networkPolicy": map[string]any{"enabled": false}},
	} {
		if fmt.Sprint(helm(t, values)) == base {
			t.Errorf("%s: %v changes nothing", name, values)
		}
	}
}

// TestWrongValuesAreRefused makes sure that a typing error does not just do nothing.
func TestWrongValuesAreRefused(t *testing.T) {
	for name, values := range map[string]map[string]any{
		"an unknown value": {"replica": 2},
		"an unknown kind":  {"kinds": []any{"toaster"}},
		"a wrong type":     {"namespaces": "a,b"},
		"a broken tag":     {"image": map[string]any{"tag": 1.1}},
		"an odd limit":     {"limits": map[string]any{"hostAccess": "Maybe"}},
	} {
		if _, err := render(t, values); err == nil {
			t.Errorf("%s is accepted: %v", name, values)
		}
	}
}

// objects are rendered objects by kind, namespace and name.
type objects map[string]*unstructured.Unstructured

func (o objects) add(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	key := fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
	if o[key] != nil {
		t.Errorf("%s is there twice", key)
	}
	o[key] = object
}

func compare(t *testing.T, expected, got objects) {
	t.Helper()
	// Helm makes the namespace itself, if it is told to.
	delete(expected, "Namespace /"+namespace)
	keys := map[string]bool{}
	for _, all := range []objects{expected, got} {
		for key := range all {
			keys[key] = true
		}
	}
	if len(keys) == 0 {
		t.Fatal("there is nothing to compare")
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		switch {
		case expected[key] == nil:
			t.Errorf("only the chart has %s", key)
		case got[key] == nil:
			t.Errorf("the chart lacks %s", key)
		default:
			a, b := text(t, expected[key]), text(t, got[key])
			if a != b {
				t.Errorf("%s is different.\nconfig:\n%s\nchart:\n%s", key, a, b)
			}
		}
	}
}

// ofHelm are the labels and annotations that a release has, and files that are applied by hand have not.
var ofHelm = []string{"helm.sh/chart", "helm.sh/resource-policy", "app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "app.kubernetes.io/version"}

func text(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	object = object.DeepCopy()
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	for _, name := range ofHelm {
		delete(labels, name)
		delete(annotations, name)
	}
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
	data, err := json.MarshalIndent(object, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func rules(t *testing.T, role *unstructured.Unstructured) []string {
	t.Helper()
	if role == nil {
		t.Fatal("the role is missing")
	}
	all, _, err := unstructured.NestedSlice(role.Object, "rules")
	if err != nil {
		t.Fatal(err)
	}
	var result []string
	for _, rule := range all {
		result = append(result, fmt.Sprint(rule))
	}
	slices.Sort(result)
	return result
}

func kustomize(t *testing.T, folder string) objects {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	data, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	result := objects{}
	result.decode(t, data)
	return result
}

func render(t *testing.T, values map[string]any) (map[string]string, error) {
	t.Helper()
	chart, err := loader.Load("../../charts/opdock")
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "opdock", Namespace: namespace, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, all)
}

func helm(t *testing.T, values map[string]any) objects {
	t.Helper()
	files, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	result := objects{}
	for path, content := range files {
		if strings.HasSuffix(path, ".yaml") {
			result.decode(t, []byte(content))
		}
	}
	return result
}

func (o objects) decode(t *testing.T, data []byte) {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in:\n%s", err, data)
		}
		if len(object.Object) > 0 {
			o.add(t, object)
		}
	}
}
