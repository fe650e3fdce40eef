// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"strings"
	"testing"
	"time"
)

// An operator that manages its own certificates looks for objects that are not on the cluster when opdock dev starts it.
func TestHintsAboutAnExit(t *testing.T) {
	const (
		looks = "the operator looks for its Deployment harbour-controller, which dev does not apply because the operator runs here: " +
			"use a flag after -- or a variable with which it needs none"
		changes = "the operator changes webhook configuration harbour-hooks when it starts, but dev applies it only once the webhooks are served; " +
			"with a flag after -- or a variable, turn off that the operator manages its certificates, or name a directory with a certificate: " +
			"tls.crt and tls.key of this session are in /certs"
	)
	deployed := surrounding{kind: "Deployment", name: "harbour-controller", certificates: "/certs", here: true, kubectl: "opdock kubectl --name harbour"}
	elsewhere := deployed
	elsewhere.here = false
	for name, test := range map[string]struct {
		line string
		in   surrounding
		want string
	}{
		"its Deployment, by labels":             {`ERROR setup {"error":"no operator deployment found"}`, deployed, looks + ", or apply it beside this session: opdock deploy"},
		"its Deployment, by labels, elsewhere":  {`no deployments found`, elsewhere, looks},
		"its Deployment, by name":               {`{"error":"deployments.apps \"harbour-controller\" not found"}`, elsewhere, looks},
		"another Deployment":                    {`deployments.apps "sea" not found`, deployed, ""},
		"a Deployment, without manifests of it": {`no operator deployment found`, surrounding{certificates: "/certs"}, ""},
		"a mutating webhook configuration":      {`"error":"mutatingwebhookconfigurations.admissionregistration.k8s.io \"harbour-hooks\" not found"`, deployed, changes},
		"a validating webhook configuration":    {`validatingwebhookconfigurations.admissionregistration.k8s.io "harbour-hooks" not found`, deployed, changes},
		"one elsewhere":                         {`validatingwebhookconfigurations.admissionregistration.k8s.io "harbour-hooks" not found`, elsewhere, strings.Replace(changes, "only once the webhooks are served", "only on clusters of Opdock", 1)},
		"a namespace":                           {`Error: namespaces "harbour-system" not found`, deployed, "the operator needs namespace harbour-system: opdock kubectl --name harbour create namespace harbour-system"},
		"something else":                        {`pods "harbour" not found`, deployed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := exitHint([]string{"INFO starting", test.line, "INFO bye"}, test.in); got != test.want {
				t.Errorf("got %q", got)
			}
			if test.want != "" {
				if got := exitHint([]string{`namespaces "before" not found`, test.line}, test.in); got != test.want {
					t.Errorf("after another one: got %q", got)
				}
			}
		})
	}
}

func TestTheStatusLineExplainsAnExit(t *testing.T) {
	screen := &rounds{}
	s := &Session{
		Options:      Options{Screen: screen, Observer: unobserved{}},
		certificates: &certificates{dir: "/certs"},
		retry:        time.NewTimer(time.Hour),
		process:      &process{ready: newReadiness(), began: time.Now(), last: []string{`namespaces "harbour-system" not found`}},
	}
	defer s.retry.Stop()
	s.crash(Round{})
	if len(screen.rounds) != 1 || !strings.Contains(screen.rounds[0].Problem.Hint, "kubectl create namespace harbour-system") {
		t.Errorf("got %+v", screen.rounds)
	}
	// What it looked for while it worked is no reason to exit.
	s.process.began = time.Now().Add(-2 * stable)
	s.crash(Round{})
	if len(screen.rounds) != 2 || screen.rounds[1].Problem.Hint != "" {
		t.Errorf("got %+v", screen.rounds)
	}
}
