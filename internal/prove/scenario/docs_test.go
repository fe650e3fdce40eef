// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"os"
	"strings"
	"testing"
)

// TestDocumentedScenario keeps the example in docs/prove.md valid.
func TestDocumentedScenario(t *testing.T) {
	page, err := os.ReadFile("../../../docs/prove.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n```yaml\n")
	text, _, found := strings.Cut(rest, "\n```\n")
	if !found {
		t.Fatal("docs/prove.md has no scenario")
	}
	s, err := Parse("docs/prove.md", []byte(text+"\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Steps) != 5 || !s.Steps[4].Delete.All {
		t.Errorf("got %d steps, want 5, of which the last deletes everything", len(s.Steps))
	}
	for _, test := range []struct {
		verdict, family, object, field string
		ignored                        bool
	}{
		{"status", "crash", "Frigate default/victory", "status.lastSeen", true},
		{"status", "crash", "Frigate default/victory", "status.ready", false},
		{"end-state", "drift", "ConfigMap default/victory-logbook", "data.captain", true},
		{"end-state", "crash", "ConfigMap default/victory-logbook", "data.captain", false},
	} {
		if got := s.Ignores(test.verdict, test.family, test.object, []string{test.field}) != nil; got != test.ignored {
			t.Errorf("%+v: ignored is %v", test, got)
		}
	}
}
