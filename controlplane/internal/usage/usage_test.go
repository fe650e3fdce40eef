// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var started = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func podWith(annotation string, containers ...corev1.Container) *corev1.Pod {
	start := metav1.NewTime(started)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{Annotation: annotation}},
		Spec:       corev1.PodSpec{Containers: containers},
		Status:     corev1.PodStatus{StartTime: &start},
	}
}

func container(cpu, memory string) corev1.Container {
	c := corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}
	if cpu != "" {
		c.Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		c.Resources.Requests[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return c
}

func TestUsage(t *testing.T) {
	for name, test := range map[string]struct {
		annotation  string
		after       time.Duration
		group       Group
		pod         []corev1.Container
		cpu, memory string
	}{
		"default without requests": {pod: []corev1.Container{container("", "")}, cpu: "10m", memory: "32Mi"},
		"default of requests":      {pod: []corev1.Container{container("500m", "128Mi")}, cpu: "50m", memory: "64Mi"},
		"one given":                {annotation: "cpu=250m", pod: []corev1.Container{container("1", "128Mi")}, cpu: "250m", memory: "64Mi"},
		"both given":               {annotation: "cpu=2, memory=1Gi", pod: []corev1.Container{container("", "")}, cpu: "2", memory: "1Gi"},
		"percent":                  {annotation: "cpu=80%,memory=150%", pod: []corev1.Container{container("500m", "100Mi")}, cpu: "400m", memory: "150Mi"},
		"percent of nothing":       {annotation: "cpu=80%", pod: []corev1.Container{container("", "")}, cpu: "0", memory: "32Mi"},
		"two containers":           {annotation: "cpu=300m", pod: []corev1.Container{container("", ""), container("", "")}, cpu: "150m", memory: "32Mi"},
		"bad value counts as none": {annotation: "cpu=lots", pod: []corev1.Container{container("500m", "")}, cpu: "50m", memory: "32Mi"},
		"curve at its start":       {annotation: "cpu=100m 900m@1m 100m@5m", pod: []corev1.Container{container("", "")}, cpu: "100m", memory: "32Mi"},
		"curve rising":             {annotation: "cpu=100m 900m@1m 100m@5m", after: 30 * time.Second, pod: []corev1.Container{container("", "")}, cpu: "500m", memory: "32Mi"},
		"curve at a point":         {annotation: "cpu=100m 900m@1m 100m@5m", after: time.Minute, pod: []corev1.Container{container("", "")}, cpu: "900m", memory: "32Mi"},
		"curve falling":            {annotation: "cpu=100m 900m@1m 100m@5m", after: 3 * time.Minute, pod: []corev1.Container{container("", "")}, cpu: "500m", memory: "32Mi"},
		"curve at its end":         {annotation: "cpu=100m 900m@1m 100m@5m", after: time.Hour, pod: []corev1.Container{container("", "")}, cpu: "100m", memory: "32Mi"},
		"curve that repeats":       {annotation: "cpu=0 100m@1m,repeat", after: 90 * time.Second, pod: []corev1.Container{container("", "")}, cpu: "50m", memory: "32Mi"},
		"curve of percentages":     {annotation: "cpu=0% 100%@1m", after: 30 * time.Second, pod: []corev1.Container{container("1", "")}, cpu: "500m", memory: "32Mi"},
		"curve that begins late":   {annotation: "cpu=100m@1m 200m@2m", pod: []corev1.Container{container("", "")}, cpu: "100m", memory: "32Mi"},
		"shared": {
			annotation: "cpu=1200m,shared", group: Group{Size: 4, Since: started}, pod: []corev1.Container{container("", "")}, cpu: "300m", memory: "32Mi",
		},
		"shared curve begins with the oldest pod": {
			annotation: "cpu=0 1200m@1m,shared", group: Group{Size: 2, Since: started.Add(-time.Minute)}, pod: []corev1.Container{container("", "")}, cpu: "600m", memory: "32Mi",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := OfPod(podWith(test.annotation, test.pod...), test.group, started.Add(test.after))
			if len(got) != len(test.pod) {
				t.Fatalf("%d containers", len(got))
			}
			cpu, memory := got[0].Usage[corev1.ResourceCPU], got[0].Usage[corev1.ResourceMemory]
			if cpu.Cmp(resource.MustParse(test.cpu)) != 0 || memory.Cmp(resource.MustParse(test.memory)) != 0 {
				t.Errorf("cpu %s, memory %s; want %s, %s", cpu.String(), memory.String(), test.cpu, test.memory)
			}
		})
	}
}

func TestBadValues(t *testing.T) {
	for value, says := range map[string]string{
		"cpu":                 "neither",
		"disk=1Gi":            "neither",
		"shared=yes":          "neither",
		"cpu=":                "missing",
		"cpu=lots":            "not an amount",
		"cpu=-1":              "not an amount",
		"cpu=-5%":             "not a percentage",
		"cpu=NaN%":            "not a percentage",
		"cpu=1,cpu=2":         "twice",
		"cpu=1 2":             "must come later",
		"cpu=1 2@1m 3@30s":    "must come later",
		"cpu=1 2@soon":        "needs a time",
		"cpu=1 2@-1m":         "needs a time",
		"cpu=1 50%@1m":        "either quantities or percentages",
		"cpu=1,repeat":        "repeat needs a curve",
		"repeat":              "repeat needs a curve",
		"cpu=1;memory=2":      "not an amount",
		"cpu=1,memory=2,cpu?": "neither",
	} {
		if got, err := Parse(value); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %+v, %v; want %q", value, got, err, says)
		}
	}
}
