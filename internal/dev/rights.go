// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/project"
)

// grants reports whether the operator's manifests grant it a right, judging by the rules alone.
func (s *Session) grants(verb, resource, group, namespace string) bool {
	return grantedBy(s.granted.Load(), verb, resource, group, namespace)
}

func grantedBy(identity *project.Identity, verb, resource, group, namespace string) bool {
	if identity == nil {
		return false
	}
	return slices.ContainsFunc(identity.Objects, func(object *unstructured.Unstructured) bool {
		switch object.GetKind() {
		case "ClusterRole":
		case "Role":
			if object.GetNamespace() != namespace {
				return false
			}
		default:
			return false
		}
		rules, _, _ := unstructured.NestedSlice(object.Object, "rules")
		return slices.ContainsFunc(mapsIn(rules), func(rule map[string]any) bool {
			_, named := rule["resourceNames"]
			return !named && allows(rule["verbs"], verb) && allows(rule["apiGroups"], group) && allows(rule["resources"], resource)
		})
	})
}

func allows(list any, wanted string) bool {
	all, _ := list.([]any)
	return slices.ContainsFunc(all, func(one any) bool { return one == wanted || one == "*" })
}

// deniedError names controllers that have not started because the operator lacks rights.
type deniedError struct{ controllers []string }

func (e *deniedError) Error() string {
	text := plural(len(e.controllers), "controller has", "controllers have") + " not started"
	names := slices.DeleteFunc(slices.Clone(e.controllers), func(name string) bool { return name == "" })
	if len(names) > 0 {
		text += " (" + strings.Join(names, ", ") + ")"
	}
	return text + ": the operator is not allowed to list or watch what it needs"
}

// deniedHint explains what to do about missing rights.
const deniedHint = "the missing rights follow; the operator is restarted when its roles change"
