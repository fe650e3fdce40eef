// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Webhooks are what a server is told about an operator's webhooks.
type Webhooks struct {
	// Configurations are the MutatingWebhookConfigurations and ValidatingWebhookConfigurations.
	Configurations []*unstructured.Unstructured
	// Conversion names the CRDs whose versions a webhook converts.
	Conversion []string
	// Deployed is false if the configurations are in the project but its manifests leave them out.
	Deployed bool
}

// Webhooks are those of the manifests. If they have none, those that lie in config/webhook are returned: kubebuilder
// writes them there, and leaves it to the user to make them part of config/default.
func (p *Project) Webhooks(ctx context.Context) (*Webhooks, error) {
	manifests, err := p.Manifests(ctx)
	if err != nil {
		return nil, err
	}
	result := &Webhooks{Configurations: configurationsIn(manifests), Deployed: true}
	if len(result.Configurations) == 0 && p.isFolder("config/webhook") {
		all, err := p.readFolders("config/webhook")
		if err != nil {
			return nil, fmt.Errorf("reading the webhooks: %w", err)
		}
		result.Configurations = configurationsIn(objectsOf(all))
		result.Deployed = len(result.Configurations) == 0
	}
	definitions, err := p.CRDs(ctx)
	if err != nil {
		return nil, err
	}
	// The manifests may patch what config/crd leaves alone.
	seen := map[string]bool{}
	for _, object := range append(definitions, manifests...) {
		strategy, _, _ := unstructured.NestedString(object.Object, "spec", "conversion", "strategy")
		if IsCRD(object) && strategy == "Webhook" && !seen[object.GetName()] {
			seen[object.GetName()] = true
			result.Conversion = append(result.Conversion, object.GetName())
		}
	}
	return result, nil
}

// IsWebhookConfiguration reports whether the object tells a server to call webhooks for requests.
func IsWebhookConfiguration(object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind()
	return kind.Group == "admissionregistration.k8s.io" &&
		(kind.Kind == "MutatingWebhookConfiguration" || kind.Kind == "ValidatingWebhookConfiguration")
}

func configurationsIn(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var result []*unstructured.Unstructured
	for _, object := range objects {
		if IsWebhookConfiguration(object) {
			result = append(result, object)
		}
	}
	return result
}
