// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgrade upgrades a small operator from one commit of its repository to another, on the real control plane. The tests
// need OPDOCK_CONTROLPLANE and are skipped without it.
package upgrade
