// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
)

var (
	// noNamespace is the API server's message about a namespace that does not exist. In a log, its quotes may be escaped.
	noNamespace = regexp.MustCompile(`\bnamespaces \\*"([\w.-]+)\\*" not found`)
	// noConfiguration is the same about a webhook configuration.
	noConfiguration = regexp.MustCompile(`\b(?:mutating|validating)webhookconfigurations\.admissionregistration\.k8s\.io \\*"([\w.-]+)\\*" not found`)
	// noWorkload is the same about a workload.
	noWorkload = regexp.MustCompile(`\b(?:deployments|statefulsets|daemonsets)\.apps \\*"([\w.-]+)\\*" not found`)
	// noneFound are the words of operators that look for their Deployment by its labels.
	noneFound = regexp.MustCompile(`(?i)\bno (?:\w+ )?deployments? (?:\w+ )?found\b`)
)

// surrounding is what opdock dev knows about the objects that an operator may look for when it starts.
type surrounding struct {
	kind, name   string // the operator's workload in the manifests; empty if they have none
	certificates string // the directory of the session's certificate
	here         bool   // the cluster is one of Opdock's
	kubectl      string // the command for kubectl on that cluster
}

// exitHint explains which object an operator misses according to the end of its log; empty if it does not say. It looks for objects
// that the operator finds in production, but that opdock dev does not apply, or not before the operator serves its webhooks.
func exitHint(lines []string, s surrounding) string {
	for _, line := range slices.Backward(lines) { // the last one is the reason
		if match := noConfiguration.FindStringSubmatch(line); match != nil {
			when := "only once the webhooks are served"
			if !s.here {
				when = "only on clusters of Opdock"
			}
			return fmt.Sprintf("the operator changes webhook configuration %s when it starts, but dev applies it "+when+"; "+
				"with a flag after -- or a variable, turn off that the operator manages its certificates, or name a directory with a certificate: "+
				"tls.crt and tls.key of this session are in %s", match[1], s.certificates)
		}
		if match := noWorkload.FindStringSubmatch(line); s.name != "" && (match != nil && match[1] == s.name || noneFound.MatchString(line)) {
			hint := fmt.Sprintf("the operator looks for its %s %s, which dev does not apply because the operator runs here: "+
				"use a flag after -- or a variable with which it needs none", s.kind, s.name)
			if s.here {
				hint += ", or apply it beside this session: opdock deploy" // its pods are simulated, so no second operator runs
			}
			return hint
		}
		if match := noNamespace.FindStringSubmatch(line); match != nil {
			return fmt.Sprintf("the operator needs namespace %s: %s create namespace %s", match[1], s.kubectl, match[1])
		}
	}
	return ""
}

// surrounding describes what the operator may look for.
func (s *Session) surrounding() surrounding {
	around := surrounding{certificates: s.certificates.dir, here: s.Cluster.CallsBack, kubectl: cmp.Or(s.Cluster.Kubectl, "kubectl")}
	if c, found := containerIn(s.manifests.all, s.manifests.identity); found {
		around.kind, around.name = c.workload.GetKind(), c.workload.GetName()
	}
	return around
}
