// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package devcmd holds the verb dev. What it does is in internal/dev.
package devcmd

import "github.com/opdock/opdock/internal/cli/cmdutil"

// verbs are the program and its surroundings, for the verbs of this package.
type verbs struct{ *cmdutil.App }
