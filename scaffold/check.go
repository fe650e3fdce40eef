// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"path/filepath"
	"slices"
)

// These functions check a single answer, for interactive prompts. The functions that create
// plans check everything again.

// CheckInit returns an error if no project can be created in a directory.
func CheckInit(dir string) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	return (&project{tree: newTree(absolute)}).checkEmpty()
}

// CheckProject returns an error if a directory is not that of a project that can be changed.
func CheckProject(dir string) error {
	_, err := open(dir)
	return err
}

// CheckDomain returns an error if API groups cannot end with the domain.
func CheckDomain(domain string) error { return checkDomain(domain) }

// CheckProjectName returns an error if deployed objects cannot have names that begin with the name.
func CheckProjectName(name string) error { return checkProjectName(name) }

// CheckRepo returns an error if a Go module cannot have the path.
func CheckRepo(repo string) error { return checkRepo(repo) }

// CheckLicense returns an error if the license is neither one of Licenses nor a file.
func CheckLicense(license string) error {
	if slices.Contains(Licenses, license) {
		return nil
	}
	_, err := boilerplate(InitOptions{License: license})
	return err
}

// CheckGroup returns an error if a kind of the project in a directory cannot have the group.
func CheckGroup(dir, group string) error {
	p, err := open(dir)
	if err != nil {
		return err
	}
	return checkGroup(group, p.Domain)
}

// CheckVersion returns an error if a kind cannot have the version.
func CheckVersion(version string) error { return checkVersion(version) }

// CheckKind returns an error if a kind cannot have the name.
func CheckKind(kind string) error { return checkKind(kind) }
