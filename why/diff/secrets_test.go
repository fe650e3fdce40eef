// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import "testing"

func TestHideSecrets(t *testing.T) {
	const hidden = " (the rest is hidden: it may contain values of the Secret)"
	for message, want := range map[string]string{
		`writing: failed to create typed patch object (default/keys; /v1, Kind=Secret): .stringData.pin: expected string, got &value.valueUnstructured{Value:482913}`: `writing: failed to create typed patch object (default/keys; /v1, Kind=Secret): .stringData.pin: expected string, got` + hidden,
		"Secret \"keys\" is invalid: [type: Invalid value: \"482913\", data: Required value]\nand more":                                                               `Secret "keys" is invalid:` + hidden,
		`secrets "keys" already exists`:                                   `secrets "keys" already exists`,
		`ConfigMap "keys" is invalid: data[pin]: Invalid value: "482913"`: `ConfigMap "keys" is invalid: data[pin]: Invalid value: "482913"`,
		`failed to create typed patch object (default/keys; /v1, Kind=ConfigMap): .data.pin: expected string, got &value.valueUnstructured{Value:1}`: `failed to create typed patch object (default/keys; /v1, Kind=ConfigMap): .data.pin: expected string, got &value.valueUnstructured{Value:1}`,
	} {
		if got := HideSecrets(message); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
