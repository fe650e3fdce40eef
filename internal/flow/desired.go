// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// AppliedAnnotation holds a hash of the last applied configuration of a child. If it equals the hash of the
// configuration, the configuration has not changed.
const AppliedAnnotation = "opdock.dev/applied"

// desired is a child as it should be.
type desired struct {
	content                map[string]any
	apiVersion, kind, name string
	// hash is the hash of the content without AppliedAnnotation.
	hash string
}

// isAppliedTo reports whether the child has the hash of this configuration, so the configuration has not changed.
func (d *desired) isAppliedTo(live metav1.Object) bool {
	return live.GetAnnotations()[AppliedAnnotation] == d.hash
}

// complete adds to a configuration what all children have.
func (p *Pass) complete(configuration any) (*desired, error) {
	data, err := json.Marshal(configuration)
	if err != nil {
		return nil, fmt.Errorf("encoding a child: %w", err)
	}
	var content map[string]any
	if err := json.Unmarshal(data, &content); err != nil {
		return nil, fmt.Errorf("decoding a child: %w", err)
	}
	gvk, err := apiutil.GVKForObject(p.owner, p.client.Scheme())
	if err != nil {
		return nil, err
	}
	metadata := field(content, "metadata")
	metadata["namespace"] = p.owner.GetNamespace()
	labels := field(metadata, "labels")
	for name, value := range p.labels() {
		labels[name] = value
	}
	metadata["ownerReferences"] = []any{map[string]any{
		"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "name": p.owner.GetName(), "uid": string(p.owner.GetUID()),
		"controller": true, "blockOwnerDeletion": true,
	}}
	result := &desired{content: content}
	result.apiVersion, _ = content["apiVersion"].(string)
	result.kind, _ = content["kind"].(string)
	result.name, _ = metadata["name"].(string)
	if data, err = json.Marshal(content); err != nil {
		return nil, fmt.Errorf("encoding a child: %w", err)
	}
	// It is only ever compared with itself, so a few bytes are enough.
	sum := sha256.Sum256(data)
	result.hash = hex.EncodeToString(sum[:8])
	field(metadata, "annotations")[AppliedAnnotation] = result.hash
	return result, nil
}

// labels returns the labels of every child.
func (p *Pass) labels() map[string]string {
	return map[string]string{LabelManagedBy: ManagedBy, LabelKind: p.labelKind, LabelInstance: p.owner.GetName()}
}

// field returns the object below a name, and creates it if it does not exist.
func field(object map[string]any, name string) map[string]any {
	below, ok := object[name].(map[string]any)
	if !ok {
		below = map[string]any{}
		object[name] = below
	}
	return below
}
