// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lens is a proxy between one operator and one API server. It shows what the operator does, without a change
// to the operator: every request, every response and every watch event becomes an Event of a typed stream.
//
// The proxy is transparent. It forwards bytes as they arrive, in any encoding, and decodes copies of them in the
// background. Data that it cannot decode or has no room for is still forwarded, and the stream reports what is
// unknown. It forwards with one identity, that of its rest.Config, and serves only clients that have its own
// credential.
//
// Faults can hold, delay, drop or replace requests, responses and watch events.
package lens
