// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provecmd holds the verb prove.
package provecmd

import "github.com/opdock/opdock/internal/cli/cmdutil"

// verbs are the program and its surroundings, for the verbs of this package.
type verbs struct{ *cmdutil.App }
