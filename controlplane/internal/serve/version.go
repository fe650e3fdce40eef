// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/opdock/opdock/controlplane/internal/emulation"
	"github.com/opdock/opdock/controlplane/internal/fault"
)

// releaseSeparator stands between the version of a control plane and the one that it emulated.
const releaseSeparator = " as "

// release names a control plane together with what it emulates.
func release(kubernetes, emulated string) string {
	if emulated == "" {
		return kubernetes
	}
	return kubernetes + releaseSeparator + emulated
}

// emulatedIn returns the version that a release emulates; empty if none.
func emulatedIn(release string) string {
	_, emulated, _ := strings.Cut(release, releaseSeparator)
	return emulated
}

// minorOf returns the minor version whose behaviour a release has, as v1.34.
func minorOf(release string) string {
	if emulated := emulatedIn(release); emulated != "" {
		return "v" + emulated
	}
	return semver.MajorMinor(release)
}

// emulate decides which version of Kubernetes the cluster is: the one that is
// asked for, else the one it had, else for a new one that of the environment.
func (p *plane) emulate() error {
	wanted, before := p.options.Emulated, p.bootstrappedBy()
	if wanted == "" && before == "" {
		wanted = os.Getenv(emulation.Variable)
	}
	emulated, err := emulation.Normalize(wanted)
	if err != nil {
		return err
	}
	if wanted == "" {
		emulated = emulatedIn(before)
	}
	now := minorOf(release(p.options.Kubernetes, emulated))
	if before != "" && semver.Compare(minorOf(before), now) > 0 {
		return &fault.Error{
			Reason:  fault.NewerState,
			Message: fmt.Sprintf("the objects were written by Kubernetes %s, which %s may be unable to read", strings.TrimPrefix(minorOf(before), "v"), strings.TrimPrefix(now, "v")),
			Hint:    "start a new cluster with the older version; a cluster can only move to a newer one",
		}
	}
	p.folder.Info.Emulated = emulated
	return emulation.Set(emulated)
}

// release is what this control plane is and emulates.
func (p *plane) release() string { return release(p.options.Kubernetes, p.folder.Info.Emulated) }

// bootstrappedBy is the release that has written what a cluster starts with;
// empty if none has.
func (p *plane) bootstrappedBy() string {
	if p.origin != nil {
		return p.origin.release
	}
	return p.folder.Info.Complete
}
