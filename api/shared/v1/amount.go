// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// The generated schema of resource.Quantity accepts exponents that the Go type cannot decode. One object with such a quantity prevents
// clients from listing all objects of its kind. An amount is therefore a string, and its exponent has at most two digits.

// Amount is a quantity, such as 100m or 64Mi.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:Pattern=`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,2}))?$`
type Amount string

// UnmarshalJSON accepts numbers as well. It writes a quantity as Kubernetes does, 1000m as 1, so that most equal amounts are the same text.
func (a *Amount) UnmarshalJSON(data []byte) error {
	text := string(data)
	if text == "null" {
		return nil
	}
	if bytes.HasPrefix(data, []byte{'"'}) {
		if err := json.Unmarshal(data, &text); err != nil {
			return fmt.Errorf("reading an amount: %w", err)
		}
	} else if err := json.Unmarshal(data, new(json.Number)); err != nil {
		return fmt.Errorf("%s is no amount: %w", data, err)
	}
	if quantity, err := resource.ParseQuantity(text); err == nil {
		text = quantity.String()
	}
	*a = Amount(text)
	return nil
}

// Equal reports whether two amounts are the same, however they are written.
func (a Amount) Equal(b Amount) bool {
	one, err := resource.ParseQuantity(string(a))
	if err != nil {
		return a == b
	}
	other, err := resource.ParseQuantity(string(b))
	return err == nil && one.Cmp(other) == 0
}
