// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Webhooks holds the webhook configurations of an operator.
type Webhooks struct {
	// Configurations are the MutatingWebhookConfigurations and ValidatingWebhookConfigurations.
	Configurations []*unstructured.Unstructured
	// Conversion names the CRDs whose versions a webhook converts.
	Conversion []string
	// Deployed is false if the configurations are in the project but its manifests leave them out.
	Deployed bool
}

// Webhooks returns the webhooks of the manifests. If there are none, it returns those in config/webhook: kubebuilder
// writes them there, and the user has to add them to config/default.
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

var templatedWebhooks = regexp.MustCompile(`(?m)^kind:\s*(Mutating|Validating)WebhookConfiguration\s*$`)

// TemplatedWebhooks are the templates of Helm charts, relative to the project's folder, that have webhook configurations. Without
// Helm they cannot be read.
func (p *Project) TemplatedWebhooks() (files []string) {
	for _, folder := range p.existing(usualFolders...) {
		// What cannot be read is not there.
		_ = filepath.WalkDir(p.path(folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !isYAML(path) {
				return nil //nolint:nilerr // see above
			}
			chart, _, templated := strings.Cut(p.relative(path), "/templates/")
			if !templated || !p.isFile(chart+"/Chart.yaml") {
				return nil
			}
			if content, err := os.ReadFile(path); err == nil && templatedWebhooks.Match(content) {
				files = append(files, p.relative(path))
			}
			return nil
		})
	}
	return files
}

// IsWebhookConfiguration reports whether the object is a webhook configuration.
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
