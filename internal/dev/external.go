// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// externalDefinitions are the CRDs of other modules' kinds that the cluster lacks. On a cluster that others use as well it is
// for them to say who installs those. They are looked for once: they come from modules that do not change.
func (s *Session) externalDefinitions(ctx context.Context) []*unstructured.Unstructured {
	if s.lookedForExternal || !s.Cluster.CallsBack {
		return s.external
	}
	var lacking []*unstructured.Unstructured
	for _, definition := range s.Project.ExternalCRDs(ctx, s.Env) {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(definition.GroupVersionKind())
		if err := s.applier.server.Get(ctx, client.ObjectKeyFromObject(definition), live); !apierrors.IsNotFound(err) {
			continue // there is one, or it shows elsewhere that the server does not answer
		}
		s.Screen.Say(fmt.Sprintf("installed CRD %s from the module named in PROJECT; nothing else of that module is installed", definition.GetName()))
		lacking = append(lacking, withoutConversion(definition))
	}
	s.external, s.lookedForExternal = lacking, ctx.Err() == nil
	return s.external
}
