// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/flow"
)

func clusterOf(t *testing.T, spec string) *kubegroupv1.PodCluster {
	t.Helper()
	cluster := &kubegroupv1.PodCluster{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "1234"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &cluster.Spec); err != nil {
		t.Fatal(err)
	}
	return cluster
}

func TestSettings(t *testing.T) {
	defaults := settings{name: "web", replicas: 1, maxUnavailable: 1, inPlace: true, deadline: 10 * time.Minute, historyLimit: 10}
	with := func(change func(*settings)) settings {
		changed := defaults
		change(&changed)
		return changed
	}
	for spec, want := range map[string]settings{
		"{}": defaults,
		"{podReplicas: 10, updateStrategy: {maxUnavailable: 3}}":   with(func(s *settings) { s.replicas, s.maxUnavailable = 10, 3 }),
		"{podReplicas: 10, updateStrategy: {maxUnavailable: 25%}}": with(func(s *settings) { s.replicas, s.maxUnavailable = 10, 2 }),
		"{podReplicas: 3, updateStrategy: {maxUnavailable: 10%}}":  with(func(s *settings) { s.replicas, s.maxUnavailable = 3, 1 }),
		"{podReplicas: 0}": with(func(s *settings) { s.replicas = 0 }),
		"{updateStrategy: {type: OnDelete, inPlace: Never}}":                    with(func(s *settings) { s.onDelete, s.inPlace = true, false }),
		"{updateStrategy: {partition: 4}, minReadySeconds: 5}":                  with(func(s *settings) { s.partition, s.minReady = 4, 5*time.Second }),
		"{progressDeadlineSeconds: 7, revisionHistoryLimit: 0, podReplicas: 1}": with(func(s *settings) { s.deadline, s.historyLimit = 7*time.Second, 0 }),
	} {
		got, err := settingsOf(clusterOf(t, spec))
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; not %+v", spec, got, err, want)
		}
	}
}

func TestSettingsThatTheSchemaWouldRefuse(t *testing.T) {
	for spec, want := range map[string]string{
		"{podReplicas: -1}":                            "podReplicas",
		"{updateStrategy: {partition: -1}}":            "partition",
		"{updateStrategy: {type: Sometimes}}":          "type",
		"{updateStrategy: {inPlace: Sometimes}}":       "inPlace",
		"{updateStrategy: {maxUnavailable: 0}}":        "maxUnavailable",
		"{updateStrategy: {maxUnavailable: 0%}}":       "maxUnavailable",
		"{updateStrategy: {maxUnavailable: some}}":     "maxUnavailable",
		"{updateStrategy: {maxUnavailable: -3}}":       "maxUnavailable",
		"{minReadySeconds: -1}":                        "minReadySeconds",
		"{progressDeadlineSeconds: 0}":                 "progressDeadlineSeconds",
		"{revisionHistoryLimit: -1, podReplicas: -10}": "revisionHistoryLimit",
	} {
		if _, err := settingsOf(clusterOf(t, spec)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v and does not name %s", spec, err, want)
		}
	}
}

func TestWhatMakesARevision(t *testing.T) {
	data := func(spec string) []byte {
		t.Helper()
		encoded, err := dataOf(mustTemplate(t, &clusterOf(t, spec).Spec))
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	const own = "{image: a, template: {spec: {containers: [{name: main, image: b}]}}}"
	same := [][2]string{
		{"{}", "{image: 'nginx:1.29', template: {spec: {containers: [{name: main}]}}}"},
		{"{image: a}", "{image: a, podReplicas: 7, minReadySeconds: 3}"},
		{own, strings.Replace(own, "image: a", "image: c", 1)},
		{"{image: b}", own},
	}
	for _, pair := range same {
		if !bytes.Equal(data(pair[0]), data(pair[1])) {
			t.Errorf("%s and %s make different revisions", pair[0], pair[1])
		}
	}
	different := [][2]string{
		{"{image: a}", "{image: b}"},
		{own, "{image: a, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: b}]}}}"},
	}
	for _, pair := range different {
		one, other := data(pair[0]), data(pair[1])
		if bytes.Equal(one, other) || revisionHash(one, 0) == revisionHash(other, 0) {
			t.Errorf("%s and %s make the same revision", pair[0], pair[1])
		}
	}
	if one := data("{}"); revisionHash(one, 0) == revisionHash(one, 1) {
		t.Error("a collision does not lead to another hash")
	}
}

// A revision is known again, also if the server has put its fields into another order.
func TestRevisionRoundTrip(t *testing.T) {
	cluster := clusterOf(t, "{image: a, template: {metadata: {labels: {x: y}}, spec: {containers: [{name: main, resources: {limits: {cpu: 1000m}}}]}}}")
	data, err := dataOf(mustTemplate(t, &cluster.Spec))
	if err != nil {
		t.Fatal(err)
	}
	object := revisionObject(cluster, data, revisionHash(data, 0), 3)
	object.Data.Raw = bytes.Replace(object.Data.Raw, []byte(`{"metadata":{"labels":{"x":"y"}},`), []byte(`{ "metadata" : {"labels":{"x":"y"}},`), 1)
	read := readRevision("web", object)
	if read == nil || !read.holds(data) || read.hash != revisionHash(data, 0) {
		t.Fatalf("it was read as %+v", read)
	}
	object.Data.Raw = []byte(`{"something": "else"}`)
	if readRevision("web", object) != nil {
		t.Error("what holds no template was read as a revision")
	}
}

func TestSameButImages(t *testing.T) {
	for _, test := range []struct {
		from, to string
		want     bool
	}{
		{"{image: a}", "{image: b}", true},
		{"{image: 'a:1'}", "{image: 'a:2'}", true},
		{"{image: 'a:1'}", "{image: 'a:latest'}", false},
		{"{image: a}", "{image: 'a:1'}", false},
		{
			"{image: 'a:1', template: {spec: {containers: [{name: main, imagePullPolicy: Never}]}}}",
			"{image: 'a:latest', template: {spec: {containers: [{name: main, imagePullPolicy: Never}]}}}", true,
		},
		{"{template: {spec: {containers: [{name: main}]}}}", "{template: {spec: {containers: [{name: other}]}}}", false},
		{"{template: {spec: {containers: [{name: main}]}}}", "{template: {spec: {containers: [{name: main}, {name: other}]}}}", false},
		{"{template: {spec: {containers: [{name: main, args: [a]}]}}}", "{template: {spec: {containers: [{name: main, args: [b]}]}}}", false},
		{"{template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main}]}}}", "{template: {spec: {containers: [{name: main}]}}}", false},
		{
			"{image: 'a:1', template: {spec: {containers: [{name: main, resources: {limits: {cpu: 1000m}}}]}}}",
			"{image: 'b:1', template: {spec: {containers: [{name: main, resources: {limits: {cpu: 1}}}]}}}", true,
		},
		{
			"{template: {spec: {containers: [{name: main}], initContainers: [{name: init, image: a}]}}}",
			"{template: {spec: {containers: [{name: main}], initContainers: [{name: init, image: b}]}}}", false,
		},
	} {
		from, to := &revision{template: mustTemplate(t, &clusterOf(t, test.from).Spec)}, &revision{template: mustTemplate(t, &clusterOf(t, test.to).Spec)}
		if got := sameButImages(from, to); got != test.want {
			t.Errorf("from %s to %s: %v", test.from, test.to, got)
		}
	}
	if sameButImages(nil, newRevision("v1")) {
		t.Error("an unknown revision differs in images only")
	}
}

func TestPod(t *testing.T) {
	cluster := clusterOf(t, `
serviceName: ring
image: a
template:
  metadata: {labels: {tier: storage, app.kubernetes.io/instance: mine}, annotations: {note: x}}
  spec: {containers: [{name: main}, {name: side, image: b}], initContainers: [{name: init}], terminationGracePeriodSeconds: 5}
`)
	pod, err := podOf(cluster, &revision{hash: "v1", template: mustTemplate(t, &cluster.Spec)}, 7)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join([]string{
		pod.Namespace, pod.Name, pod.Spec.Hostname, pod.Spec.Subdomain, pod.Annotations["note"], pod.Labels["tier"],
		pod.Labels[flow.LabelInstance], pod.Labels[flow.LabelKind], pod.Labels[flow.LabelManagedBy], pod.Labels[labelOrdinal], pod.Labels[labelRevision],
		pod.Spec.Containers[0].Image, pod.Spec.Containers[1].Image, pod.Spec.InitContainers[0].Image,
	}, "/")
	if want := "default/web-7/web-7/ring/x/storage/web/podcluster/opdock/7/v1/a/b/a"; got != want {
		t.Errorf("it is\n%s, not\n%s", got, want)
	}
	if owner := metav1.GetControllerOf(pod); owner == nil || owner.UID != "1234" || owner.Kind != "PodCluster" || owner.APIVersion != "kubegroup.generals.space/v1" {
		t.Errorf("its owner is %+v", owner)
	}
	cluster.Spec.ServiceName = nil
	if pod, err = podOf(cluster, newRevision("v1"), 0); err != nil || pod.Spec.Hostname+pod.Spec.Subdomain != "" {
		t.Errorf("without a service it has a host name: %+v, %v", pod.Spec, err)
	}
}

func TestPruned(t *testing.T) {
	w := parseWorld(t, settings{name: "web", historyLimit: 2}, "v3/v6/v6")
	for _, hash := range []string{"v1", "v2", "v4", "v5", "v7", "v8"} {
		w.revisions[hash] = newRevision(hash)
	}
	w.current, w.update = w.revisions["v1"], w.revisions["v8"]
	names := func() (names []string) {
		for _, one := range pruned(&w) {
			names = append(names, one.hash)
		}
		return names
	}
	if got := names(); !slices.Equal(got, []string{"v2", "v4"}) {
		t.Errorf("of v2, v4, v5 and v7, which are unused, these are pruned: %v", got)
	}
	w.historyLimit = 0
	if got := names(); !slices.Equal(got, []string{"v2", "v4", "v5", "v7"}) {
		t.Errorf("without a history these are pruned: %v", got)
	}
}

func TestClusterKeys(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Labels = map[string]string{flow.LabelKind: "podcluster", flow.LabelInstance: "web"}
	if got := clusterKeys(pod); !slices.Equal(got, []string{instanceKey("web")}) {
		t.Errorf("an orphan has the keys %v", got)
	}
	pod.OwnerReferences = []metav1.OwnerReference{controllerRef(clusterOf(t, "{}"))}
	pod.Labels[flow.LabelKind] = "robot"
	if got := clusterKeys(pod); !slices.Equal(got, []string{ownerKey("1234")}) {
		t.Errorf("a pod that has lost its labels has the keys %v", got)
	}
	pod.OwnerReferences[0].Kind = "ReplicaSet"
	if got := clusterKeys(pod); got != nil {
		t.Errorf("a pod of a Deployment has the keys %v", got)
	}
}

func mustTemplate(t *testing.T, spec *kubegroupv1.PodClusterSpec) *sharedv1.PodTemplate {
	t.Helper()
	template, err := templateOf(spec)
	if err != nil {
		t.Fatal(err)
	}
	return template
}
