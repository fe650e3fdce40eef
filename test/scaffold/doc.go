// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scaffold_test makes projects as users do, and treats them as users do: it builds, checks and tests them. Each
// project has several features at once where that proves the same, because every project costs a minute.
package scaffold_test
