// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/projectfile"
)

// completeKind completes the flags that name a kind from the project's PROJECT file. Each of them leaves out what does not
// fit the others, and does not help with names that are new.
func (a verbs) completeKind(cmd *cobra.Command, n *apiName, dir *string) {
	offer := func(flag string, fits func(projectfile.Resource) bool, value func(projectfile.Resource) string) {
		a.Complete(cmd, flag, func() []string {
			file, err := projectfile.Read(*dir)
			if err != nil {
				return nil // the verb will say why
			}
			var values []string
			for _, one := range file.Resources {
				if text := value(one); text != "" && fits(one) && !slices.Contains(values, text) {
					values = append(values, text)
				}
			}
			return values
		})
	}
	is := func(wanted, got string) bool { return wanted == "" || wanted == got }
	offer("group", func(one projectfile.Resource) bool { return is(n.version, one.Version) && is(n.kind, one.Kind) },
		func(one projectfile.Resource) string { return one.Group })
	offer("version", func(one projectfile.Resource) bool { return is(n.group, one.Group) && is(n.kind, one.Kind) },
		func(one projectfile.Resource) string { return one.Version })
	offer("kind", func(one projectfile.Resource) bool { return is(n.group, one.Group) && is(n.version, one.Version) },
		func(one projectfile.Resource) string { return one.Kind })
	offer("api-version", func(one projectfile.Resource) bool { return is(n.kind, one.Kind) }, func(one projectfile.Resource) string {
		return one.QualifiedGroup() + "/" + one.Version
	})
}
