// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/crdspec"
)

// Remainder is what there is of a kind.
type Remainder struct {
	Definition string `json:"definition"`
	Kind       string `json:"kind"`
	Count      int    `json:"count"`
	// Example is one of them.
	Example string `json:"example"`
	// Finalizers are the finalizers of the example, which block its deletion.
	Finalizers []string `json:"finalizers,omitempty"`
}

func (r Remainder) String() string {
	text := fmt.Sprintf("%d objects of kind %s, such as %s", r.Count, r.Kind, r.Example)
	if r.Count == 1 {
		text = fmt.Sprintf("%s %s", r.Kind, r.Example)
	}
	if len(r.Finalizers) > 0 {
		text += ", which is waiting for finalizers: " + strings.Join(r.Finalizers, ", ")
	}
	return text
}

// Instances are the objects that there are of the defined kinds, one entry for each kind that has any.
func (s *Server) Instances(ctx context.Context, definitions []*unstructured.Unstructured) ([]Remainder, error) {
	var all []Remainder
	for _, definition := range definitions {
		live := empty(definition)
		err := s.client.Get(ctx, client.ObjectKeyFromObject(definition), live)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", title(definition), err)
		}
		kind := crdspec.Of(live)
		versions := kind.ServedVersions()
		if len(versions) == 0 {
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(versions[0].WithKind(kind.Kind))
		list.Kind += "List"
		err = s.client.List(ctx, list)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || len(list.Items) == 0 && err == nil {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing objects of kind %s: %w", kind.Kind, err)
		}
		first := list.Items[0]
		example := first.Name
		if first.Namespace != "" {
			example = first.Namespace + "/" + first.Name
		}
		all = append(all, Remainder{
			Definition: live.GetName(), Kind: kind.Kind, Count: len(list.Items), Example: example, Finalizers: first.Finalizers,
		})
	}
	return all, nil
}
