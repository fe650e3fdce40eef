// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestParse(t *testing.T) {
	exit := func(code int32, after time.Duration) Behaviour {
		return Behaviour{Kind: KindExit, ExitCode: code, After: after, MaxBackoff: 5 * time.Minute}
	}
	for value, want := range map[string]Behaviour{
		"run":                  {Kind: KindRun},
		"complete":             exit(0, 0),
		"complete,after=5s":    exit(0, 5*time.Second),
		"exit=0":               exit(0, 0),
		"exit=3":               exit(3, 0),
		"exit=255,after=1m30s": exit(255, 90*time.Second),
		"crash-loop":           exit(1, 0),
		"crash-loop,max-backoff=1s,after=2s": {
			Kind: KindExit, ExitCode: 1, After: 2 * time.Second, MaxBackoff: time.Second,
		},
		"image-pull-error":   {Kind: KindImagePullError},
		"never-ready":        {Kind: KindNeverReady},
		"ready-after=30s":    {Kind: KindReadyAfter, After: 30 * time.Second},
		"ready-after=0s":     {Kind: KindReadyAfter},
		"node-lost":          {Kind: KindNodeLost},
		"node-lost,after=5s": {Kind: KindNodeLost, After: 5 * time.Second},
		"node-lost,for=1m":   {Kind: KindNodeLost, For: time.Minute},
		"node-lost,for=1m,after=2s": {
			Kind: KindNodeLost, For: time.Minute, After: 2 * time.Second,
		},
	} {
		t.Run(value, func(t *testing.T) {
			got, err := Parse(value)
			if err != nil || got != want {
				t.Errorf("Parse(%q) = %+v, %v; want %+v", value, got, err, want)
			}
		})
	}
}

func TestParseAllowsSpaces(t *testing.T) {
	got, err := Parse(" crash-loop , after=10s ")
	if err != nil || got.ExitCode != 1 || got.After != 10*time.Second {
		t.Errorf("Parse = %+v, %v", got, err)
	}
}

func TestParseErrors(t *testing.T) {
	for value, want := range map[string]string{
		"explode":                    `"explode" is not a behaviour`,
		"Crash-Loop":                 `"Crash-Loop" is not a behaviour`,
		"":                           `"" is not a behaviour`,
		"exit":                       "exit needs a value: exit=CODE",
		"exit=":                      `exit needs an exit code from 0 to 255, not ""`,
		"exit=256":                   "from 0 to 255",
		"exit=-1":                    "from 0 to 255",
		"crash-loop=3":               "crash-loop takes no value",
		"ready-after":                "ready-after needs a value: ready-after=DURATION",
		"ready-after=30":             `ready-after needs a duration such as 30s or 2m, not "30"`,
		"ready-after=-1s":            "needs a duration",
		"never-ready,after=1s":       `never-ready has no option "after"`,
		"complete,after":             `after needs a duration such as 30s or 2m, not ""`,
		"complete,":                  `complete has no option ""`,
		"complete,after=1s,after=2s": "after is given twice",
		"crash-loop,max-backoff=0s":  "max-backoff must be at least 1s",
		"crash-loop,never-ready":     `crash-loop has no option "never-ready"`,
	} {
		t.Run(value, func(t *testing.T) {
			got, err := Parse(value)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Parse(%q) = %+v, %v; want an error with %q", value, got, err, want)
			}
		})
	}
}

// What a message offers must be what Parse takes.
func TestValidBehavioursAreAllForms(t *testing.T) {
	offered := map[string]bool{}
	for example := range strings.SplitSeq(validBehaviours, ", ") {
		name, _, _ := strings.Cut(example, "=")
		offered[name] = true
		example = strings.NewReplacer("CODE", "1", "DURATION", "1s").Replace(example)
		if _, err := Parse(example); err != nil {
			t.Errorf("offered but not valid: %v", err)
		}
	}
	for name := range forms {
		if !offered[name] {
			t.Errorf("%s is valid but not offered", name)
		}
	}
}

func TestBehaviourOf(t *testing.T) {
	jobPod := func(annotations map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Annotations:     annotations,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", Controller: new(true)}},
		}}
	}
	annotated := func(value string) map[string]string { return map[string]string{Annotation: value} }
	otherJob := jobPod(nil)
	otherJob.OwnerReferences[0].APIVersion = "example.com/v1"
	for name, test := range map[string]struct {
		pod     *corev1.Pod
		want    Kind
		invalid bool
	}{
		"no annotation":                         {pod: &corev1.Pod{}, want: KindRun},
		"empty annotation":                      {pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: annotated(" ")}}, want: KindRun},
		"annotation":                            {pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: annotated("never-ready")}}, want: KindNeverReady},
		"bad annotation":                        {pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: annotated("explode")}}, want: KindRun, invalid: true},
		"pod of a Job completes":                {pod: jobPod(nil), want: KindExit},
		"pod of a Job with a bad annotation":    {pod: jobPod(annotated("explode")), want: KindExit, invalid: true},
		"pod of a Job that is told to run":      {pod: jobPod(annotated("run")), want: KindRun},
		"pod of a Job of somebody else's group": {pod: otherJob, want: KindRun},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := behaviourOf(test.pod)
			if got.Kind != test.want || (err != nil) != test.invalid {
				t.Errorf("behaviourOf = %+v, %v; want %s, invalid %t", got, err, test.want, test.invalid)
			}
		})
	}
}
