// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deploy tries what users install on the real control plane: the manifests, the rights that they grant, and the
// manager as a program. The pods of the manager are simulated there, so the tests run the manager themselves, with the
// identity that its pods would have.
package deploy
