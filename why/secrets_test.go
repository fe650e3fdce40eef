// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"errors"
	"strings"
	"testing"
)

func TestErrorsQuoteNoSecrets(t *testing.T) {
	err := errors.Join(errors.New("first"), errors.New(`Secret "keys" is invalid: type: Invalid value: "482913"`))
	if got := errorText(err, 512); !strings.HasPrefix(got, "first\nSecret \"keys\" is invalid: ") || strings.Contains(got, "482913") {
		t.Errorf("got %q", got)
	}
}
