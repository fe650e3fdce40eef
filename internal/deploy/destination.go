// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/project"
)

// leadToService gives up the addresses that somebody else has applied where the object names a Service, as a session of
// opdock dev does while it runs the operator: both together are refused, and server-side apply keeps what others own unless
// it is told otherwise. The certificate of such an address goes with it.
func leadToService(object, live *unstructured.Unstructured) {
	switch {
	case project.IsCRD(object):
		path := []string{"spec", "conversion", "webhook", "clientConfig"}
		wanted, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
		there, _, _ := unstructured.NestedFieldNoCopy(live.Object, path...)
		giveUpAddress(wanted, there)
	case project.IsWebhookConfiguration(object):
		there := webhooksByName(live)
		for name, webhook := range webhooksByName(object) {
			giveUpAddress(webhook["clientConfig"], there[name]["clientConfig"])
		}
	}
}

func giveUpAddress(wanted, there any) {
	config, _ := wanted.(map[string]any)
	live, _ := there.(map[string]any)
	if config["service"] == nil || config["url"] != nil || live["url"] == nil {
		return
	}
	config["url"] = nil
	if _, own := config["caBundle"]; !own {
		config["caBundle"] = nil
	}
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
