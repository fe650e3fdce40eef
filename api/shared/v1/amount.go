// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"fmt"
)

// The schema of a quantity of Kubernetes admits exponents that the type cannot read. One object with such a quantity would keep a client
// from listing all others, so the text is kept as it was written, and only exponents of two digits are admitted.

// Amount is a quantity, such as 100m or 64Mi.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:Pattern=`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,2}))?$`
type Amount string

// UnmarshalJSON accepts numbers as well.
func (a *Amount) UnmarshalJSON(data []byte) error {
	var number json.Number
	if err := json.Unmarshal(data, &number); err != nil || len(data) == 0 || data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return fmt.Errorf("%s is no amount: %w", data, err)
		}
		*a = Amount(text)
		return nil
	}
	*a = Amount(number)
	return nil
}
