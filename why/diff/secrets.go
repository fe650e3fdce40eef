// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import "regexp"

// quotingSecrets matches messages of the API server that quote values of a Secret, up to the first value. Server-side apply quotes
// values of the wrong type, and validation those that it does not accept.
var quotingSecrets = regexp.MustCompile(`(?s)(\([^()]*; /v1, Kind=Secret\): \S+ expected \w+, got|Secret "[^"]*" is invalid:).*`)

// HideSecrets returns an error message without values of Secrets. It cuts the text where the API server may have quoted one.
func HideSecrets(message string) string {
	return quotingSecrets.ReplaceAllString(message, "$1 (the rest is hidden: it may contain values of the Secret)")
}
