// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/lens"
)

// TestRightsForSignersAreLimited to those that were used, whatever they are called: with a right for all signers, an operator can
// issue a certificate for any user.
func TestRightsForSignersAreLimited(t *testing.T) {
	many := []string{"example.com/a", "example.com/b", "example.com/c", "example.com/d", "example.com/e", "example.com/f", "example.com/g", "example.com/h", "example.com/i"}
	for name, test := range map[string]struct {
		signers   []string
		mentioned []string
		missing   uint64
		explained bool
	}{
		"one":                             {signers: []string{"example.com/ship"}},
		"named after a reconciled object": {signers: []string{"example.com/victory"}, explained: true},
		"a value of a custom resource":    {signers: []string{"example.com/ship"}, mentioned: []string{"example.com/ship"}, explained: true},
		"many":                            {signers: many},
		"events are missing":              {signers: []string{"example.com/ship"}, missing: 1, explained: true},
	} {
		t.Run(name, func(t *testing.T) {
			var uses []*lens.Use
			for _, verb := range []string{"approve", "sign"} {
				for _, signer := range test.signers {
					uses = append(uses, implied(asked(1, verb, "signers.certificates.k8s.io", "/"+signer), "it was used"))
				}
			}
			recording := recorded(uses...)
			recording.Totals.Mentioned, recording.Missing = test.mentioned, test.missing
			report := Compare(Merge([]*Recording{recording}), Granted{}, Options{})
			if len(report.Needs) != 2 {
				t.Fatalf("needed is\n%s", lines(report.Needs))
			}
			for _, n := range report.Needs {
				if !slices.Equal(n.Names, test.signers) {
					t.Errorf("%s is limited to %q", n.Verb, n.Names)
				}
				if why := strings.Join(n.Why, "\n"); strings.Contains(why, "which must be added") != test.explained {
					t.Errorf("%s is explained with %q", n.Verb, why)
				}
			}
		})
	}
}
