// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/why"
)

func TestWhyNamesOnlyWritersThatAreKnown(t *testing.T) {
	web := &why.Object{Kind: "Deployment", Namespace: "default", Name: "web"}
	removed := why.Cause{Type: why.Updated, Object: web, Changes: []why.Change{{Path: "metadata.labels.tier", Old: `"web"`}}, Changed: 1}
	named, ours := removed, removed
	named.By = []why.Writer{{Manager: "kubectl"}}
	ours.Write = &why.WriteRef{Record: 41}
	for want, cause := range map[string]why.Cause{
		"updated Deployment default/web by somebody unknown\n": removed,
		"updated Deployment default/web by kubectl\n":          named,
		"updated Deployment default/web (written by #41)\n":    ours,
		"deleted Deployment default/web\n":                     {Type: why.Deleted, Object: web},
		"updated Deployment default/web\n":                     {Type: why.Updated, Object: web}, // metadata that nobody is told of
	} {
		var out strings.Builder
		(&whyShow{out: &out, location: time.UTC}).record(&why.Record{Causes: []why.Cause{cause}, Folded: 1})
		if !strings.Contains(out.String(), "• "+want) {
			t.Errorf("without %q:\n%s", want, &out)
		}
	}
}
