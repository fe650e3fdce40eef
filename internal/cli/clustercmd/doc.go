// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustercmd holds the verbs for clusters: up, down, status, fork, snapshot, import, kubectl, kubeconfig, assets and build-controlplane.
package clustercmd

import "github.com/opdock/opdock/internal/cli/cmdutil"

// verbs are the program and its surroundings, for the verbs of this package.
type verbs struct{ *cmdutil.App }
