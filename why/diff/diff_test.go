// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/why/internal/whytest"
)

var testDiffer = Differ{MaxChanges: 16, MaxValue: 120, MaxCompared: 20_000}

func TestCompare(t *testing.T) {
	tests := map[string]struct {
		change func(*appsv1.Deployment)
		want   []string
	}{
		"nothing":           {func(*appsv1.Deployment) {}, nil},
		"noise":             {func(d *appsv1.Deployment) { d.ResourceVersion, d.Generation, d.ManagedFields = "2", 2, nil }, nil},
		"a pointer's value": {func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](1) }, []string{"spec.replicas 3→1"}},
		"a pointer goes":    {func(d *appsv1.Deployment) { d.Spec.Replicas = nil }, []string{"spec.replicas 3→"}},
		"an element by its name": {
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[1].Image = "sidecar:2" },
			[]string{`spec.template.spec.containers[name=sidecar].image "sidecar:1"→"sidecar:2"`},
		},
		"another order is no change": {func(d *appsv1.Deployment) { slices.Reverse(d.Spec.Template.Spec.Containers) }, nil},
		"an element goes": {
			func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers = d.Spec.Template.Spec.Containers[:1]
			},
			[]string{`spec.template.spec.containers[name=sidecar] {"name":"sidecar","image":"sidecar:1"}→`},
		},
		"an element without a key of its own": {
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Ports[1].Protocol = "SCTP" },
			[]string{`spec.template.spec.containers[name=app].ports[1].protocol "UDP"→"SCTP"`},
		},
		"a list of texts is one value": {
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Args = []string{"--a"} },
			[]string{`spec.template.spec.containers[name=app].args ["--a","--b"]→["--a"]`},
		},
		"a condition": {
			func(d *appsv1.Deployment) { d.Status.Conditions[0].Status = "False" },
			[]string{`status.conditions[type=Available].status "True"→"False"`},
		},
		"a time": {
			func(d *appsv1.Deployment) {
				d.Status.Conditions[0].LastUpdateTime = metav1.NewTime(time.Unix(2, 0).UTC())
			},
			[]string{`status.conditions[type=Available].lastUpdateTime "1970-01-01T00:00:01Z"→"1970-01-01T00:00:02Z"`},
		},
		"the same time elsewhere": {
			func(d *appsv1.Deployment) {
				d.Status.Conditions[0].LastUpdateTime = metav1.NewTime(time.Unix(1, 0).In(time.FixedZone("x", 3600)))
			}, nil,
		},
		"a number that was nothing": {func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 2 }, []string{"status.readyReplicas 0→2"}},
		"the same quantity written otherwise": {
			func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("0.5")
			}, nil,
		},
		"a quantity": {
			func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("1")
			},
			[]string{`spec.template.spec.containers[name=app].resources.limits.cpu "500m"→"1"`},
		},
		"a number or text": {
			func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(1)) },
			[]string{`spec.strategy.rollingUpdate.maxSurge "25%"→1`},
		},
		"a label": {
			func(d *appsv1.Deployment) { d.Labels["app.kubernetes.io/name"] = "web" },
			[]string{`metadata.labels[app.kubernetes.io/name] →"web"`},
		},
		"an empty label":             {func(d *appsv1.Deployment) { d.Labels["x"] = "" }, []string{`metadata.labels.x →""`}},
		"nil and empty are the same": {func(d *appsv1.Deployment) { d.Annotations = map[string]string{} }, nil},
		"what kubectl applied is said": {func(d *appsv1.Deployment) {
			d.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
		}, nil},
		"deletion": {
			func(d *appsv1.Deployment) { d.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(2, 0).UTC())) },
			[]string{`metadata.deletionTimestamp →"1970-01-01T00:00:02Z"`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			old, now := whytest.Web(), whytest.Web()
			test.change(now)
			checkChanges(t, old, now, test.want)
		})
		t.Run(name+", unstructured", func(t *testing.T) {
			old, now := whytest.Web(), whytest.Web()
			test.change(now)
			// What typed objects call 0 is not there at all in these.
			for i := range test.want {
				test.want[i] = strings.Replace(test.want[i], " 0→", " →", 1)
			}
			checkChanges(t, asUnstructured(t, old), asUnstructured(t, now), relaxed(test.want))
		})
	}
}

// relaxed sorts the fields of whole elements as those of maps.
func relaxed(want []string) []string {
	return strings.Split(strings.ReplaceAll(strings.Join(want, "\n"), `{"name":"sidecar","image":"sidecar:1"}`,
		`{"image":"sidecar:1","name":"sidecar","resources":{}}`), "\n")
}

func checkChanges(t *testing.T, old, now client.Object, want []string) {
	t.Helper()
	found := testDiffer.Compare(old, now, false)
	var got []string
	for _, change := range found.Changes {
		got = append(got, fmt.Sprintf("%s %s→%s", change.Path, change.Old, change.New))
	}
	slices.Sort(got)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
	if found.Changed != len(found.Changes) {
		t.Errorf("%d changes, but %d are said", found.Changed, len(found.Changes))
	}
}

func asUnstructured(t *testing.T, object client.Object) client.Object {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	// As it comes from a server.
	content["kind"], content["apiVersion"] = "Deployment", "apps/v1"
	data, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return u
}

// What a Secret is for is its data; who changes a label of one is to see that.
func TestCompareSecretsShowsLabels(t *testing.T) {
	old, now := &corev1.Secret{}, &corev1.Secret{Type: "Opaque"}
	now.Labels, now.ResourceVersion = map[string]string{"by": "me"}, "2"
	want := `[{Path:metadata.labels.by Old: New:"me"} {Path:type Old: New:"Opaque"}]`
	if got := fmt.Sprintf("%+v", testDiffer.Compare(old, now, true).Changes); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Values of which only the begin is shown, and bytes, are told apart.
func TestCompareShowsWhereLargeValuesDiffer(t *testing.T) {
	long := strings.Repeat("ä", 300)
	object := func(i int) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			Data:       map[string]string{"log": long + fmt.Sprint("line ", i)},
			BinaryData: map[string][]byte{"bin": {byte(i), 2, 3}},
		}
	}
	args := func(i int) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Args: []string{long, strconv.Itoa(i)}}}}}
	}
	for _, pair := range [][2]client.Object{{object(1), object(2)}, {args(1), args(2)}} {
		changes := testDiffer.Compare(pair[0], pair[1], false).Changes
		for _, change := range changes {
			if change.Old == change.New || len(change.Old) > testDiffer.MaxValue || len(change.New) > testDiffer.MaxValue || !utf8.ValidString(change.Old) {
				t.Errorf("%s is said to change from %s to %s", change.Path, change.Old, change.New)
			}
		}
	}
	if got := testDiffer.Compare(object(1), object(2), false).Changes[0]; !strings.HasSuffix(got.Old, `äline 1"`) || !strings.HasPrefix(got.Old, `"…ä`) {
		t.Errorf("the log changes from %s to %s", got.Old, got.New)
	}
}

func TestCompareIsDeterministic(t *testing.T) {
	untyped := func(value string) client.Object {
		inner := func() map[string]any {
			fields := map[string]any{}
			for i := range 10 {
				fields[fmt.Sprint("field", i)] = map[string]any{"a": value, "b": "same"}
			}
			return fields
		}
		return &unstructured.Unstructured{Object: map[string]any{"spec": inner(), "status": inner(), "data": inner()}}
	}
	typed := func(value string) client.Object {
		c := &corev1.ConfigMap{Data: map[string]string{}, BinaryData: map[string][]byte{}}
		for i := range 12 {
			c.Data[fmt.Sprint("text", i)], c.BinaryData[fmt.Sprint("bytes", i)] = value, []byte(value)
		}
		return c
	}
	for name, object := range map[string]func(string) client.Object{"unstructured": untyped, "typed": typed} {
		first := testDiffer.Compare(object("x"), object("y"), false)
		for range 20 {
			again := testDiffer.Compare(object("x"), object("y"), false)
			if !slices.Equal(again.Changes, first.Changes) || again.Changed != first.Changed {
				t.Fatalf("%s: first %v, then %v", name, first.Changes, again.Changes)
			}
		}
		if want := map[string]int{"unstructured": 30, "typed": 24}[name]; first.Changed != want {
			t.Errorf("%s: %d changes, want %d", name, first.Changed, want)
		}
	}
}

// Values are for reading: HTML is nothing special, and nothing in them moves the cursor of a terminal.
func TestValuesAreReadable(t *testing.T) {
	value := "<b>&\"\\ \n\x1b[31m\u009b\u202e\U000e0001ä\xff"
	text := render(reflect.ValueOf(value), 120)
	if want := `"<b>&\"\\ \n\u001b[31m\u009b\u202e\udb40\udc01ä�"`; text != want {
		t.Errorf("got %s, want %s", text, want)
	}
	var back string
	if err := json.Unmarshal([]byte(text), &back); err != nil || back != strings.ToValidUTF8(value, "�") {
		t.Errorf("it reads %q: %v", back, err)
	}
}

func TestCompareBoundsHugeObjects(t *testing.T) {
	config := func(value string) *corev1.ConfigMap {
		c := &corev1.ConfigMap{Data: map[string]string{}}
		for i := range 100_000 {
			c.Data[fmt.Sprint("key", i)] = value
		}
		return c
	}
	found := testDiffer.Compare(config("a"), config("b"), false)
	if len(found.Changes) != 16 || found.Changed < 1000 || found.Changed > testDiffer.MaxCompared+1 {
		t.Errorf("%d changes of %d", len(found.Changes), found.Changed)
	}
	big := &corev1.ConfigMap{Data: map[string]string{"big": strings.Repeat("ä", 1<<20)}}
	changes := testDiffer.Compare(&corev1.ConfigMap{}, big, false).Changes
	if len(changes) != 1 || len(changes[0].New) > 120 || !strings.HasSuffix(changes[0].New, "…") {
		t.Errorf("the value is not shortened: %d changes, %d bytes", len(changes), len(changes[0].New))
	}
	list := func(n int) *unstructured.Unstructured {
		var all []any
		for i := range n {
			all = append(all, map[string]any{"name": strconv.Itoa(i), "value": int64(n)})
		}
		return &unstructured.Unstructured{Object: map[string]any{"list": all}}
	}
	if changed := testDiffer.Compare(list(30_000), list(30_001), false).Changed; changed > testDiffer.MaxCompared+1 {
		t.Errorf("%d changes", changed)
	}
}

// What comes empty is shown as what it is: an empty object is no empty text.
func TestEmptyValuesAreReadable(t *testing.T) {
	old := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
	for want, value := range map[string]any{"{}": map[string]any{}, "[]": []any{}, `""`: ""} {
		now := old.DeepCopy()
		now.Object["spec"].(map[string]any)["new"] = value
		if got := testDiffer.Compare(old, now, false).Changes; len(got) != 1 || got[0].Path != "spec.new" || got[0].Old != "" || got[0].New != want {
			t.Errorf("%s comes: %+v", want, got)
		}
		if got := testDiffer.Compare(now, old, false).Changes; len(got) != 1 || got[0].Old != want || got[0].New != "" {
			t.Errorf("%s goes: %+v", want, got)
		}
	}
}
