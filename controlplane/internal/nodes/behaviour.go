// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotation on a pod (or, for node-lost only, on a node) chooses its behaviour.
const Annotation = "opdock.dev/behaviour"

// Kind is what a pod does, apart from the numbers that go with it.
type Kind string

// The kinds of behaviour. Several names of the annotation may mean one kind: crash-loop and
// complete are exit codes with a name.
const (
	// KindRun is what a pod does without the annotation: it starts, is ready and stays so.
	KindRun Kind = "run"
	// KindExit lets every container end with ExitCode, After it has started; the pod's restart policy decides what follows.
	KindExit Kind = "exit"
	// KindImagePullError keeps every container that is not running yet from starting.
	KindImagePullError Kind = "image-pull-error"
	// KindNeverReady lets containers run without becoming ready.
	KindNeverReady Kind = "never-ready"
	// KindReadyAfter lets containers run and become ready After they have started.
	KindReadyAfter Kind = "ready-after"
	// KindNodeLost silences the node After the pod has started there, For a while or until the pod is gone.
	KindNodeLost Kind = "node-lost"
)

// Behaviour is the meaning of one value of the annotation.
type Behaviour struct {
	Kind       Kind
	ExitCode   int32
	After      time.Duration
	For        time.Duration // zero: for good
	MaxBackoff time.Duration // the longest pause between two restarts
}

// defaultMaxBackoff is the kubelet's.
const defaultMaxBackoff = 5 * time.Minute

// validBehaviours is what a message about a bad value offers, in the order of the documentation.
const validBehaviours = "run, complete, exit=CODE, crash-loop, image-pull-error, never-ready, ready-after=DURATION, node-lost"

// form is the shape of one name: whether it takes an argument after "=", and its options after ",".
type form struct {
	argument string
	options  []string
	start    Behaviour
}

var forms = map[string]form{
	"run":              {start: Behaviour{Kind: KindRun}},
	"complete":         {start: Behaviour{Kind: KindExit}, options: []string{"after", "max-backoff"}},
	"exit":             {start: Behaviour{Kind: KindExit}, argument: "CODE", options: []string{"after", "max-backoff"}},
	"crash-loop":       {start: Behaviour{Kind: KindExit, ExitCode: 1}, options: []string{"after", "max-backoff"}},
	"image-pull-error": {start: Behaviour{Kind: KindImagePullError}},
	"never-ready":      {start: Behaviour{Kind: KindNeverReady}},
	"ready-after":      {start: Behaviour{Kind: KindReadyAfter}, argument: "DURATION"},
	"node-lost":        {start: Behaviour{Kind: KindNodeLost}, options: []string{"after", "for"}},
}

// Parse reads a value of the annotation: a name, for some names "=" and an argument, and then
// options, each after a comma. The error of a bad value is a sentence for the pod's owner.
func Parse(value string) (Behaviour, error) {
	head, rest, hasOptions := strings.Cut(value, ",")
	name, argument, hasArgument := strings.Cut(strings.TrimSpace(head), "=")
	shape, known := forms[name]
	if !known {
		return Behaviour{}, fmt.Errorf("%q is not a behaviour", name)
	}
	b := shape.start
	if b.Kind == KindExit {
		b.MaxBackoff = defaultMaxBackoff
	}

	switch {
	case shape.argument == "" && hasArgument:
		return Behaviour{}, fmt.Errorf("%s takes no value", name)
	case shape.argument != "" && !hasArgument:
		return Behaviour{}, fmt.Errorf("%s needs a value: %s=%s", name, name, shape.argument)
	case shape.argument == "CODE":
		code, err := strconv.ParseUint(argument, 10, 8)
		if err != nil {
			return Behaviour{}, fmt.Errorf("%s needs an exit code from 0 to 255, not %q", name, argument)
		}
		b.ExitCode = int32(code)
	case shape.argument == "DURATION":
		duration, err := parseDuration(name, argument)
		if err != nil {
			return Behaviour{}, err
		}
		b.After = duration
	}

	if !hasOptions {
		return b, nil
	}
	seen := map[string]bool{}
	for option := range strings.SplitSeq(rest, ",") {
		key, text, _ := strings.Cut(strings.TrimSpace(option), "=")
		if !slices.Contains(shape.options, key) {
			return Behaviour{}, fmt.Errorf("%s has no option %q", name, key)
		}
		if seen[key] {
			return Behaviour{}, fmt.Errorf("%s is given twice", key)
		}
		seen[key] = true
		duration, err := parseDuration(key, text)
		if err != nil {
			return Behaviour{}, err
		}
		switch key {
		case "after":
			b.After = duration
		case "for":
			b.For = duration
		case "max-backoff":
			// The kubelet's own limit: less would be a loop that does nothing but crash.
			if duration < time.Second {
				return Behaviour{}, fmt.Errorf("max-backoff must be at least 1s, not %q", text)
			}
			b.MaxBackoff = duration
		}
	}
	return b, nil
}

func parseDuration(name, text string) (time.Duration, error) {
	duration, err := time.ParseDuration(text)
	if err != nil || duration < 0 {
		return 0, fmt.Errorf("%s needs a duration such as 30s or 2m, not %q", name, text)
	}
	return duration, nil
}

// behaviourOf returns what a pod is to do. With an error it is what the pod does all the same,
// as if it had no annotation.
func behaviourOf(pod *corev1.Pod) (Behaviour, error) {
	value := strings.TrimSpace(pod.Annotations[Annotation])
	if value == "" {
		return defaultBehaviour(pod), nil
	}
	b, err := Parse(value)
	if err != nil {
		return defaultBehaviour(pod), err
	}
	return b, nil
}

// defaultBehaviour makes the pods of a Job complete, because a Job whose pods run for ever is
// useless; all other pods run.
func defaultBehaviour(pod *corev1.Pod) Behaviour {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner != nil && owner.Kind == "Job" && strings.HasPrefix(owner.APIVersion, "batch/") {
		return Behaviour{Kind: KindExit, MaxBackoff: defaultMaxBackoff}
	}
	return Behaviour{Kind: KindRun}
}
