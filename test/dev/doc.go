// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dev tries opdock dev as a user has it: the program itself, on the real control plane, with projects that are
// edited while it runs. The tests need OPDOCK_CONTROLPLANE and are skipped without it.
package dev
