// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package emulation

import (
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	basecompatibility "k8s.io/component-base/compatibility"

	"github.com/opdock/opdock/controlplane/internal/fault"
)

// Without the build's flags the version of this test binary is upstream's default for tests, whichever that is.
func TestNormalize(t *testing.T) {
	all := Available()
	own := all[len(all)-1]
	for wanted, want := range map[string]string{
		"": "", own: "", "v" + own + ".3": "", own + ".0": "",
		all[0]: all[0], "v" + all[1]: all[1], all[2] + ".7": all[2],
	} {
		if got, err := Normalize(wanted); err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", wanted, got, err, want)
		}
	}
	if len(all) != 4 || !slices.IsSorted(all) {
		t.Errorf("available: %q", all)
	}
	for _, wanted := range []string{"1.2", "2.36", "1.99", "latest", "1", "-", "1.x"} {
		var shown *fault.Error
		if got, err := Normalize(wanted); !errors.As(err, &shown) || shown.Reason != fault.BadOption || shown.Hint == "" {
			t.Errorf("%q: got %q, %v", wanted, got, err)
		}
	}
}

func TestVersionInfo(t *testing.T) {
	effective := basecompatibility.NewEffectiveVersionFromString("1.36.3", "1.33", "1.33")
	if info := (Version{effective}).Info(); info.Minor != "36" {
		t.Errorf("without emulation: %+v", info)
	}
	effective.SetEmulationVersion(version.MajorMinor(1, 34))
	info := Version{effective}.Info()
	if info.Major != "1" || info.Minor != "34" || info.GitVersion != "v1.34.0+emulated.by.opdock.1.36.3" || info.EmulationMinor != "34" {
		t.Errorf("emulated: %+v", info)
	}
	if parsed, err := version.ParseSemantic(info.GitVersion); err != nil || parsed.Minor() != 34 {
		t.Errorf("users cannot read %s: %v", info.GitVersion, err)
	}
}
