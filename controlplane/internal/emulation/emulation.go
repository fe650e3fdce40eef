// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package emulation makes the control plane behave as an older minor version
// of Kubernetes, by upstream's own means: the emulated version decides which
// APIs are served, which feature gates exist and what their defaults are, in
// the API server, the controllers and the scheduler. The code that runs is the
// new one all the same: bugs that were fixed since stay fixed.
//
// Like feature gates, the version applies to the whole process.
package emulation

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/util/version"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"
	baseversion "k8s.io/component-base/version"

	"github.com/opdock/opdock/controlplane/internal/fault"
)

// Variable names the environment variable that selects the version of new clusters, and of the API server of envtest.
const Variable = "OPDOCK_KUBERNETES"

// oldest is how many minor versions back upstream can emulate.
const oldest = 3

// Normalize returns a version as MAJOR.MINOR, and "" for the version of this control plane itself. It takes a patch
// version and a leading v, which users copy from elsewhere, and ignores them.
func Normalize(wanted string) (string, error) {
	if wanted == "" {
		return "", nil
	}
	own := ownVersion()
	parsed, err := version.ParseGeneric(wanted)
	if err != nil || parsed.Major() != own.Major() || parsed.Minor() > own.Minor() || parsed.Minor()+oldest < own.Minor() {
		return "", &fault.Error{
			Reason:  fault.BadOption,
			Message: fmt.Sprintf("Kubernetes %s is not available in this control plane, which is %s", wanted, baseversion.Get().GitVersion),
			Hint:    "use one of " + list(own),
		}
	}
	if parsed.Minor() == own.Minor() {
		return "", nil
	}
	return minorOf(parsed), nil
}

// Available lists the versions that can be selected, oldest first.
func Available() []string {
	own := ownVersion()
	var all []string
	for minor := own.Minor() - oldest; minor <= own.Minor(); minor++ {
		all = append(all, fmt.Sprintf("%d.%d", own.Major(), minor))
	}
	return all
}

func list(own *version.Version) string {
	return fmt.Sprintf("%d.%d to %d.%d", own.Major(), own.Minor()-oldest, own.Major(), own.Minor())
}

func minorOf(v *version.Version) string { return fmt.Sprintf("%d.%d", v.Major(), v.Minor()) }

func ownVersion() *version.Version {
	return compatibility.DefaultComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent).BinaryVersion()
}

// Set makes the process emulate a version, as Normalize returns it, and applies the feature gates. It must be called
// once, before any component is built.
func Set(emulated string) error {
	registry := compatibility.DefaultComponentGlobalsRegistry
	if emulated != "" {
		parsed, err := version.ParseMajorMinor(emulated)
		if err != nil {
			return fmt.Errorf("emulating Kubernetes %q: %w", emulated, err)
		}
		effective, ok := registry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent).(basecompatibility.MutableEffectiveVersion)
		if !ok {
			return fmt.Errorf("emulating Kubernetes %s: the version of this process cannot be set", emulated)
		}
		effective.SetEmulationVersion(parsed)
	}
	if err := registry.Set(); err != nil {
		return fmt.Errorf("feature gates: %w", err)
	}
	return nil
}

// Current returns the version that the process emulates, as vMAJOR.MINOR.0, or its own version.
func Current() string {
	effective := compatibility.DefaultComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent)
	emulated, own := effective.EmulationVersion(), effective.BinaryVersion()
	if emulated.Minor() == own.Minor() && emulated.Major() == own.Major() {
		return baseversion.Get().GitVersion
	}
	return fmt.Sprintf("v%s.0", minorOf(emulated))
}

// Version is an effective version whose Info, which /version serves, is what code that asks a server for its version
// expects: the emulated version. Upstream answers with the version of the binary there.
type Version struct {
	basecompatibility.EffectiveVersion
}

// Info returns the emulated version, with the real one after a plus sign.
func (v Version) Info() *apimachineryversion.Info {
	info := v.EffectiveVersion.Info()
	emulated, own := v.EmulationVersion(), v.BinaryVersion()
	if info == nil || emulated == nil || (emulated.Major() == own.Major() && emulated.Minor() == own.Minor()) {
		return info
	}
	info.Major = strconv.FormatUint(uint64(emulated.Major()), 10)
	info.Minor = strconv.FormatUint(uint64(emulated.Minor()), 10)
	info.GitVersion = fmt.Sprintf("v%s.0+emulated.by.opdock.%s", minorOf(emulated), own)
	return info
}
