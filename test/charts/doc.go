// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package charts compares the Helm chart with the manifests in config. It is a module of its own because Helm brings
// along more than all the rest of Opdock needs, and it reads the files of the repository without importing its code.
package charts
