// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package envtest is a test suite as operator authors write them for controller-runtime's envtest: an
// environment with a CRD and a webhook, a manager with a reconciler, and tests that wait. It knows nothing of
// Opdock but the one variable that says whether controllers run beside the API server. Package e2e runs it on
// the envtest assets of Opdock, both ways.
package envtest
