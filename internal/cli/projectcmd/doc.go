// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package projectcmd holds the verbs for the source and the manifests of a project: init, create, delete, generate, build,
// install, uninstall, deploy and undeploy.
package projectcmd

import "github.com/opdock/opdock/internal/cli/cmdutil"

// verbs are the program and its surroundings, for the verbs of this package.
type verbs struct{ *cmdutil.App }
