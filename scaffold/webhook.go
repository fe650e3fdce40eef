// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

// Webhook is what templates know about the webhooks of a kind.
type Webhook struct {
}
