// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"fmt"
	"regexp"
	"sync"
)

var (
	// forbidden matches the API server's message about a missing right. In a log, its quotes may be escaped.
	forbidden = regexp.MustCompile(`cannot (\w+) resource \\*"([\w./-]+)\\*" in API group \\*"([\w.-]*)\\*"(?: in the namespace \\*"([\w.-]+))?`)
	// absentRole is the end of that message if a binding of the user refers to a role that does not exist. Several are a list.
	absentRole = regexp.MustCompile(`RBAC: \[?(?:cluster)?role\.rbac\.authorization\.k8s\.io \\*"([\w.:-]+)\\*" not found`)
	// forbiddenWatch matches client-go's message if it cannot read why a watch was refused.
	forbiddenWatch = regexp.MustCompile(`\bunknown \(get ([a-z][a-z0-9-]*)(?:\.([a-z0-9.-]+))?\)`)
	// noFile matches the message of package os about a missing file.
	noFile = regexp.MustCompile(`open (/[^\s:"]+): no such file or directory`)
	// unset matches messages of operators about a missing environment variable.
	unset = regexp.MustCompile(`\b([A-Z][A-Z0-9]*_[A-Z0-9_]*)\b[^.;]{0,30}\b(?:must be set|is not set|not set|is required|is missing|is empty|not found|not defined|undefined)`)
	// outside is client-go's message to an operator that supports only the in-cluster configuration.
	outside = regexp.MustCompile(`unable to load in-cluster configuration`)
	// exists is how it refuses to create something a second time.
	exists = regexp.MustCompile(`([a-z][\w.-]*) \\*"([\w.-]+)\\*" already exists`)
	// changing is what differs between two lines that say the same: times, and numbers of reconciles.
	changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]+`)
)

// invisible is how often the creation of an existing object must fail before its creator is assumed not to see it.
// Once or twice, the cache may just be late.
const invisible = 3

// advice prints what to do about common error lines in an operator's log. They are easily overlooked: they come with
// a stack, and a controller that may not watch something waits silently.
type advice struct {
	say func(string)
	// granted reports whether the manifests grant the operator a right; it may be nil.
	granted func(verb, resource, group, namespace string) bool
	// unbound names a role of the manifests that has the right and no binding; empty if there is none. It may be nil.
	unbound func(verb, resource, group string) string
	// hidden are files of the operator's pod that it cannot see here, and where they are instead.
	hidden map[string]string

	mu      sync.Mutex
	known   map[string]bool
	created map[string]int // failed creations
	held    []string       // messages to print after the round, below its status line
	over    bool
}

func newAdvice(say func(string)) *advice {
	return &advice{say: say, known: map[string]bool{}, created: map[string]int{}}
}

// read takes notice of a line.
func (a *advice) read(line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	text := a.about(line)
	switch {
	case text == "" || a.known[text]:
		return
	case a.over:
		a.say(text)
	default:
		a.held = append(a.held, text)
	}
	a.known[text] = true
}

// roundIsOver prints the pending advice, and from now on prints advice at once.
func (a *advice) roundIsOver() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, text := range a.held {
		a.say(text)
	}
	a.held, a.over = nil, true
}

func (a *advice) about(line string) string {
	if match := forbidden.FindStringSubmatch(line); match != nil {
		if a.granted != nil && a.granted(match[1], match[2], match[3], match[4]) {
			return fmt.Sprintf("the operator is not allowed to %s %s, although its role in the manifests allows it; the role or its binding on the cluster "+
				"has been changed or deleted, for example by opdock undeploy: restart opdock dev to apply them again", match[1], match[2])
		}
		if role := absentRole.FindStringSubmatch(line); role != nil {
			return fmt.Sprintf("the operator is not allowed to %s %s; one of its bindings refers to role %s, which does not exist: "+
				"check the names and prefixes in the kustomization", match[1], match[2], role[1])
		}
		if a.unbound != nil {
			if role := a.unbound(match[1], match[2], match[3]); role != "" {
				return fmt.Sprintf("the operator is not allowed to %s %s; %s allows it, but no binding in the manifests refers to that role", match[1], match[2], role)
			}
		}
		return lacks(match[1], match[2], match[3])
	}
	if match := forbiddenWatch.FindStringSubmatch(line); match != nil {
		return lacks("watch", match[1], match[2])
	}
	if match := noFile.FindStringSubmatch(line); match != nil {
		return a.aboutFile(match[1])
	}
	if match := unset.FindStringSubmatch(line); match != nil {
		return fmt.Sprintf("the operator's log says that variable %s is missing; set it in the Deployment, or for this session: %s=… opdock dev", match[1], match[1])
	}
	if outside.MatchString(line) {
		return "the operator reads only the in-cluster configuration; if it has a flag or a variable for running outside a cluster, set it: " +
			"opdock dev -- --FLAG; otherwise use ctrl.GetConfig in its code, which also reads KUBECONFIG"
	}
	if match := exists.FindStringSubmatch(line); match != nil {
		// One attempt may be logged in several ways; only what repeats is another attempt.
		said := match[0] + changing.ReplaceAllString(line, "")
		a.created[said]++
		if a.created[said] == invisible {
			return fmt.Sprintf("the operator keeps creating %s %q, which already exists; its cache may not contain the object: "+
				"check whether main restricts the cache (ByObject) to a label that the object does not have", match[1], match[2])
		}
	}
	return ""
}

// aboutFile explains how the operator gets a file of its pod.
func (a *advice) aboutFile(path string) string {
	if source := a.hidden[path]; source != "" {
		return fmt.Sprintf("the operator reads %s, as in its pod, but this system does not let opdock provide files there; "+
			"they are at %s: if the operator has a flag for the path, pass it after --", path, source)
	}
	if path == namespaceFile {
		return "the operator reads its namespace from a file that only pods have; a Deployment in the manifests provides it here, " +
			"or pass the namespace by a flag after --, or by a variable"
	}
	return ""
}

// lacks names the missing right and the marker that grants it. Caches need three verbs, and request one at a time.
func lacks(verb, resource, group string) string {
	verbs := verb
	if verb == "get" || verb == "list" || verb == "watch" {
		verbs = "get;list;watch"
	}
	return fmt.Sprintf("the operator is not allowed to %s %s; add to its role: // +kubebuilder:rbac:groups=%s,resources=%s,verbs=%s",
		verb, resource, cmp.Or(group, `""`), resource, verbs)
}
