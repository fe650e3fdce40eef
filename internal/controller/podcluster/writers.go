// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"context"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// wasChanged ends the text about a field if its writer is not known.
const wasChanged = " was changed"

// withWriters adds to texts about changed fields which managers have set them. Caches drop the records about metadata, so the
// object is read into live. If that fails, the texts stay as they are: the correction matters more.
func (r *Reconciler) withWriters(ctx context.Context, s *scope, object, live client.Object, texts []string) []string {
	isUnknown := func(text string) bool { return strings.HasSuffix(text, wasChanged) && !strings.Contains(text, "[") }
	if !slices.ContainsFunc(texts, isUnknown) || r.Reader.Get(ctx, client.ObjectKeyFromObject(object), live) != nil {
		return texts
	}
	named := slices.Clone(texts)
	for i, text := range named {
		if !isUnknown(text) {
			continue
		}
		if by := s.pass.WritersOf(live, pathOf(strings.TrimSuffix(text, wasChanged))...); by != "" {
			named[i] += " by " + by
		}
	}
	return named
}

// pathOf is the path of a field outside of lists. Names of labels and annotations may contain dots.
func pathOf(field string) (path []any) {
	for _, part := range strings.SplitN(field, ".", 3) {
		path = append(path, part)
	}
	return path
}
