// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/project"
)

// externalDefinitions returns the CRDs of external kinds that the cluster lacks. On shared clusters, users
// install them. They are searched once, because they come from modules that do not change.
func (s *Session) externalDefinitions(ctx context.Context) []*unstructured.Unstructured {
	if s.lookedForExternal || !s.Cluster.CallsBack {
		return s.external
	}
	var lacking []*unstructured.Unstructured
	for _, definition := range s.Project.ExternalCRDs(ctx, s.Env) {
		if s.isDefined(ctx, definition) {
			continue // or it shows elsewhere that the server does not answer
		}
		s.Screen.Say(fmt.Sprintf("installed CRD %s from the module named in PROJECT; nothing else of that module is installed", definition.GetName()))
		lacking = append(lacking, withoutConversion(definition))
	}
	s.external, s.lookedForExternal = lacking, ctx.Err() == nil
	return s.external
}

// isDefined reports whether the cluster already has a CRD that was just not served yet.
func (s *Session) isDefined(ctx context.Context, definition *unstructured.Unstructured) bool {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(definition.GroupVersionKind())
	return !apierrors.IsNotFound(s.applier.server.Get(ctx, client.ObjectKeyFromObject(definition), live))
}

// LackingError are kinds that the operator needs and the cluster does not have.
type LackingError struct{ Kinds []project.Wanted }

func (e *LackingError) Error() string {
	names := make([]string, 0, len(e.Kinds))
	for _, one := range e.Kinds {
		names = append(names, one.String())
	}
	return "a controller waits for " + strings.Join(names, " and ") + ", which the cluster does not have"
}

// lackingHint explains what to do about missing kinds.
const lackingHint = "apply the CRD; the controller starts once it is there. Neither the project nor the modules that it imports have it"

// aboutOtherVersion explains that the cluster has another version of a kind: Kubernetes removes old ones. It is empty if the
// cluster does not have the kind at all.
func (s *Session) aboutOtherVersion(kinds ...project.Wanted) string {
	for _, one := range kinds {
		if one.Kind == "" || s.applier == nil {
			continue
		}
		if mapping, err := s.applier.server.RESTMapper().RESTMapping(schema.GroupKind{Group: one.Group, Kind: one.Kind}); err == nil {
			return fmt.Sprintf("the cluster has %s, but not in the version that the operator requests: use %s in its code",
				one, mapping.GroupVersionKind.GroupVersion())
		}
	}
	return ""
}

// lacksNews reports whether the operator lacks a kind that was not looked for yet.
func (s *Session) lacksNews() bool {
	return slices.ContainsFunc(s.process.ready.missing(), func(one project.Wanted) bool { return !s.sought[one] })
}

// sayLacking names the kinds that an operator lacks although all its controllers run, each once.
func (s *Session) sayLacking() {
	for _, one := range s.process.ready.missing() {
		if s.unfound[one] {
			delete(s.unfound, one)
			s.Screen.Say(fmt.Sprintf("the operator's log reports that the cluster does not have %s; %s",
				one, cmp.Or(s.aboutOtherVersion(one), "if it needs that kind, apply the CRD")))
		}
	}
}

// installMissing applies the CRDs of kinds that the operator lacks, if the project's folders or the modules
// that the operator is built from have them. It returns whether a kind was added.
func (s *Session) installMissing(ctx context.Context, wanted []project.Wanted) bool {
	if s.sought == nil {
		s.sought, s.unfound = map[project.Wanted]bool{}, map[project.Wanted]bool{}
	}
	installed := false
	for _, one := range wanted {
		if s.sought[one] {
			continue
		}
		var definitions []project.Definition
		if s.Cluster.CallsBack {
			definitions = s.Project.DefinitionsOf(ctx, one, s.Main, s.Env)
		}
		if ctx.Err() != nil {
			return installed
		}
		s.sought[one], s.unfound[one] = true, len(definitions) == 0
		for _, definition := range definitions {
			installed = s.installFrom(ctx, definition.Unstructured, definition.Place) || installed
		}
	}
	return installed
}

// installFrom applies a CRD from another place than the manifests, unless the cluster has it.
func (s *Session) installFrom(ctx context.Context, definition *unstructured.Unstructured, place string) bool {
	if s.isDefined(ctx, definition) {
		return false
	}
	definition = withoutConversion(definition)
	_, err := s.applier.apply(ctx, []*unstructured.Unstructured{definition})
	if err == nil {
		err = s.applier.awaitServed(ctx, []*unstructured.Unstructured{definition})
	}
	if err != nil {
		s.Screen.Say(fmt.Sprintf("CRD %s from %s could not be installed: %v", definition.GetName(), place, err))
		return false
	}
	s.Screen.Say(fmt.Sprintf("installed CRD %s from %s, because the operator needs it; no controller reconciles that kind here", definition.GetName(), place))
	return true
}
