// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Unserved returns the live CRDs whose conversion webhook no process serves: its address is a
// loopback address of a session of opdock dev, or a Service without endpoints.
func (s *Server) Unserved(ctx context.Context, definitions []*unstructured.Unstructured, serves func(service ID) bool) ([]*unstructured.Unstructured, error) {
	var unserved []*unstructured.Unstructured
	for _, definition := range definitions {
		live := empty(definition)
		err := s.client.Get(ctx, client.ObjectKeyFromObject(definition), live)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", title(definition), err)
		}
		if isUnserved(live, serves) {
			unserved = append(unserved, live)
		}
	}
	return unserved, nil
}

func isUnserved(definition *unstructured.Unstructured, serves func(ID) bool) bool {
	if strategy, _, _ := unstructured.NestedString(definition.Object, "spec", "conversion", "strategy"); strategy != "Webhook" {
		return false
	}
	if address, found, _ := unstructured.NestedString(definition.Object, append(slices.Clone(conversionConfig), "url")...); found {
		parsed, err := url.Parse(address)
		if err != nil {
			return false
		}
		ip := net.ParseIP(parsed.Hostname())
		return ip != nil && ip.IsLoopback()
	}
	namespace, _, _ := unstructured.NestedString(definition.Object, append(slices.Clone(conversionConfig), "service", "namespace")...)
	name, _, _ := unstructured.NestedString(definition.Object, append(slices.Clone(conversionConfig), "service", "name")...)
	return !serves(ID{Kind: "Service", Namespace: namespace, Name: name})
}

// DropConversion removes the conversion webhook of a CRD. The server then only changes the
// version's name.
func (s *Server) DropConversion(ctx context.Context, definition *unstructured.Unstructured) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"conversion": {"strategy": "None", "webhook": null}}}`))
	if err := s.client.Patch(ctx, definition.DeepCopy(), patch, client.FieldOwner(ProjectManager)); err != nil {
		return fmt.Errorf("removing the conversion webhook of %s: %w", title(definition), err)
	}
	return nil
}
