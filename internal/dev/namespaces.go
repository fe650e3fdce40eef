// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watchVariable is operator-sdk's variable for the namespaces to watch.
const watchVariable = "WATCH_NAMESPACE"

// watchedNamespaces returns the namespaces that the operator watches according to its log or its environment. It is
// empty if it watches all, or if that is unknown.
func (s *Session) watchedNamespaces() []string {
	if s.process != nil {
		if watched := s.process.ready.watches(); len(watched) > 0 {
			return watched
		}
	}
	return WatchedBy(s.environment())
}

// WatchedBy returns the namespaces that an environment tells an operator to watch.
func WatchedBy(env []string) (watched []string) {
	for name := range strings.SplitSeq(lastValue(env, watchVariable), ",") {
		if name = strings.TrimSpace(name); name != "" {
			watched = append(watched, name)
		}
	}
	return watched
}

// Watches returns the namespaces that the operator watches according to its environment; empty if it watches all, or if that is
// unknown.
func (op *Operator) Watches() []string {
	return WatchedBy(mergeEnvironments(op.options.Env, op.manifests.env, nil))
}

// Watches is the same for an operator that was started: its log may say which.
func (o *Started) Watches() []string { return o.session.watchedNamespaces() }

// sampleNamespace returns the namespace of samples that set none: the user's choice, or else one that the operator
// watches.
func (s *Session) sampleNamespace() string {
	watched := s.watchedNamespaces()
	if s.NamespaceGiven || len(watched) == 0 || slices.Contains(watched, s.Namespace) {
		return s.Namespace
	}
	s.sayOnce(fmt.Sprintf("the operator watches only %s; samples that set no namespace are applied to %s", quotedList("namespace", watched), watched[0]))
	return watched[0]
}

// sayUnwatched warns about a sample that the operator does not see. --namespace does not change where it goes if the sample sets
// its namespace itself.
func (s *Session) sayUnwatched(sample *unstructured.Unstructured, setsNamespace bool) {
	watched, namespace := s.watchedNamespaces(), sample.GetNamespace()
	if len(watched) == 0 || namespace == "" || slices.Contains(watched, namespace) {
		return
	}
	remedy := "use --namespace " + watched[0]
	if setsNamespace {
		remedy = "change or remove the namespace in the sample"
	}
	s.sayOnce(fmt.Sprintf("%s %s is in namespace %s, but the operator watches only %s, so it is not reconciled; %s",
		sample.GetKind(), sample.GetName(), namespace, quotedList("namespace", watched), remedy))
}

// ensureNamespace creates a namespace that a sample names, on a cluster that is for development only.
func (s *Session) ensureNamespace(ctx context.Context, name string) error {
	if name == "" || !s.Cluster.CallsBack || s.namespaces[name] {
		return nil
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	namespace.SetName(name)
	err := s.applier.server.Get(ctx, client.ObjectKeyFromObject(namespace), namespace.DeepCopy())
	switch {
	case apierrors.IsNotFound(err):
		if _, err := s.applier.apply(ctx, []*unstructured.Unstructured{namespace}); err != nil {
			return err
		}
		s.Screen.Say("created namespace " + name + " for the samples")
	case err != nil:
		return fmt.Errorf("reading namespace %s: %w", name, err)
	}
	if s.namespaces == nil {
		s.namespaces = map[string]bool{}
	}
	s.namespaces[name] = true
	return nil
}

// sayOnce prints a message once in a session.
func (s *Session) sayOnce(text string) {
	if s.toldOnce == nil {
		s.toldOnce = map[string]bool{}
	}
	if !s.toldOnce[text] {
		s.toldOnce[text] = true
		s.Screen.Say(text)
	}
}

func quotedList(noun string, names []string) string {
	if len(names) > 1 {
		noun += "s"
	}
	return noun + " " + strings.Join(names, ", ")
}
