// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conversionConfig is the path of a CRD's conversion webhook.
var conversionConfig = []string{"spec", "conversion", "webhook", "clientConfig"}

// leadAway removes a webhook destination of another manager if the object names a different one: the address of a
// session of opdock dev if it names a Service, and the Service of a deployment if it names an address. The server
// refuses both together, and server-side apply keeps the fields of other managers.
func (s *Server) leadAway(ctx context.Context, object, live *unstructured.Unstructured, o Options) error {
	var services int // to be removed
	switch {
	case isCRD(object):
		wanted, _, _ := unstructured.NestedFieldNoCopy(object.Object, conversionConfig...)
		there, _, _ := unstructured.NestedFieldNoCopy(live.Object, conversionConfig...)
		services = giveUpDestination(wanted, there)
	case isWebhookConfiguration(object):
		there := webhooksByName(live)
		for name, webhook := range webhooksByName(object) {
			services += giveUpDestination(webhook["clientConfig"], there[name]["clientConfig"])
		}
	}
	switch {
	case services == 0:
		return nil
	case !isCRD(object):
		if err := s.client.Delete(ctx, live.DeepCopy(), deleteOptions(live, o.DryRun)...); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s, which leads to a Service: %w", title(object), err)
		}
		return nil
	case o.DryRun:
		unstructured.RemoveNestedField(object.Object, "spec", "conversion") // the rest can be tried
		return nil
	default:
		return s.leadHere(ctx, object, live, o)
	}
}

// giveUpDestination replaces an address with a Service, including its certificate: a null value removes a field of
// any manager. Server-side apply does not do this for a Service, which has nested fields; it returns 1 if there is
// one.
func giveUpDestination(wanted, there any) (services int) {
	config, _ := wanted.(map[string]any)
	live, _ := there.(map[string]any)
	switch {
	case config["service"] != nil && config["url"] == nil && live["url"] != nil:
		config["url"] = nil
		if _, own := config["caBundle"]; !own {
			config["caBundle"] = nil
		}
	case config["url"] != nil && config["service"] == nil && live["service"] != nil:
		return 1
	}
	return 0
}

// leadHere replaces the Service that converts between the versions of a CRD by the address in the object.
func (s *Server) leadHere(ctx context.Context, object, live *unstructured.Unstructured, o Options) error {
	wanted, _, _ := unstructured.NestedMap(object.Object, conversionConfig...)
	wanted["service"] = nil
	change := map[string]any{}
	// There is nothing in it yet that could be in the way.
	_ = unstructured.SetNestedMap(change, wanted, conversionConfig...)
	patch, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encoding a patch of %s: %w", title(object), err)
	}
	if err := s.client.Patch(ctx, live.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(o.Manager)); err != nil {
		return fmt.Errorf("pointing the conversion webhook of %s to this machine: %w", title(object), err)
	}
	return nil
}

// leaveDestination removes the destination from an object if the live one is an address of this machine, so it stays.
// It returns false if the object cannot be applied without it.
func leaveDestination(object, live *unstructured.Unstructured) bool {
	if isWebhookConfiguration(object) {
		return false
	}
	if there, _, _ := unstructured.NestedMap(live.Object, conversionConfig...); isCRD(object) && there["url"] != nil {
		unstructured.RemoveNestedField(object.Object, "spec", "conversion")
	}
	return true
}

func webhooksByName(configuration *unstructured.Unstructured) map[string]map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(configuration.Object, "webhooks")
	webhooks, _ := list.([]any)
	byName := map[string]map[string]any{}
	for _, one := range webhooks {
		if webhook, ok := one.(map[string]any); ok {
			name, _ := webhook["name"].(string)
			byName[name] = webhook
		}
	}
	return byName
}
