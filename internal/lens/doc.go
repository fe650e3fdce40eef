// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lens is a proxy between one operator and one API server. It shows what the operator does, without a change to the
// operator: every request, every answer and every event of a watch becomes one Event of a typed stream.
//
// The proxy is transparent. It forwards bytes as they arrive, in any encoding, and decodes copies of them on the side: what
// it cannot decode, or has no room for, is forwarded all the same, and the stream says what it does not know. It forwards as
// one identity, the one of the rest.Config that it is given, and serves only clients that have its own credential.
//
// Faults is the one place from which requests, answers and events of watches can be held, delayed, dropped or answered
// differently.
package lens
