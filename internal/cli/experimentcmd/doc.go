// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package experimentcmd holds the verb experiment. What it does is in internal/experiment.
package experimentcmd

import "github.com/opdock/opdock/internal/cli/cmdutil"

// verbs are the program and its surroundings, for the verbs of this package.
type verbs struct{ *cmdutil.App }
