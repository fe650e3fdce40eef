// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"

	"github.com/opdock/opdock/internal/filewrite"
)

// apply makes the changes, all of them or none.
func apply(ctx context.Context, m module, changes []change) error {
	files := make([]filewrite.Change, 0, len(changes))
	for _, one := range changes {
		files = append(files, filewrite.Change{
			Path: one.Path, Content: one.content, Before: one.before, Mode: one.mode, Remove: one.Kind == Leftover,
		})
	}
	return filewrite.Apply(ctx, m.dir, files)
}
