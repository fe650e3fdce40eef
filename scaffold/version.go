// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"runtime/debug"
	"slices"

	"golang.org/x/mod/semver"
)

const opdockModule = "github.com/opdock/opdock"

// OwnVersion returns the version of Opdock in the running program, for [InitOptions]. It is
// empty if that version cannot be downloaded, because the program was built from a working
// copy.
func OwnVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return versionIn(info)
}

// versionIn searches Opdock as the main module and as a dependency.
func versionIn(info *debug.BuildInfo) string {
	module := &info.Main
	if module.Path != opdockModule {
		at := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == opdockModule && m.Replace == nil })
		if at < 0 {
			return ""
		}
		module = info.Deps[at]
	} else if slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" }) {
		return "" // go install of a version records no commit, and a build in a repository does
	}
	if !semver.IsValid(module.Version) || semver.Build(module.Version) != "" {
		return ""
	}
	return module.Version
}
