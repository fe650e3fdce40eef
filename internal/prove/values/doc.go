// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package values proposes changes to a custom resource, one property at a time, for tests of the operator behind it.
//
// The changes come from the schema of the CRD and from an object that the operator handles already:
//
//   - Valid changes are what users do: scale, change an image, remove an optional block, choose another enum value.
//   - Limit changes are unusual but allowed: the largest number, the longest string, an empty list, a text of unknown
//     meaning.
//   - Misuse changes satisfy the schema and are wrong nevertheless: an image that cannot be pulled, an affinity that no
//     node satisfies, a volume that shrinks, a secret that does not exist.
//
// Properties that look like part of a core type, such as resources, affinity or probes, get values that are known to be
// good or bad for that type. They are recognized by their name and by the shape of their schema.
//
// Every proposal satisfies the schema and its CEL rules, transition rules from the object included. An operator cannot
// rely on the API server to refuse one.
package values
