// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/prove/world"
)

// content is the variant of a plan that changes a ConfigMap or a Secret which the scenario creates for the operator: a password, a
// certificate or a configuration file. An operator that reads them only when the custom resource changes never learns of it.
const content = "content"

// contentRank makes plans of that variant come early: there are few, and many operators miss the change.
const contentRank = 2

// contentPlans are the plans of that variant before a step.
func (c *campaign) contentPlans(step int) (plans []*Plan) {
	for _, one := range c.o.Others {
		key, live := find(c.reference[step-1].state, one)
		if live == nil || c.fills(key) || len(withOtherContent(live)) == 0 {
			continue
		}
		plans = append(plans, &Plan{
			Family: "input", Variant: content, Step: step, Object: key.String(), Fresh: true, rank: contentRank,
			Says: key.String() + " gets other content, and the change is reverted",
		})
	}
	return plans
}

// fills reports whether the operator writes the content of an object. It may also only label it, for example.
func (c *campaign) fills(key world.Key) bool {
	isContent := func(path string) bool {
		return strings.HasPrefix(path, "data") || strings.HasPrefix(path, "binaryData") || strings.HasPrefix(path, "stringData")
	}
	return slices.ContainsFunc(c.reference, func(s *stage) bool {
		return slices.ContainsFunc(s.writes, func(w write) bool {
			return w.object == key.Kind && w.Namespace == key.Namespace && w.Name == key.Name && w.Subresource == "" &&
				(w.Verb == "create" || w.Verb == "delete" || len(w.fields) == 0 || slices.ContainsFunc(w.fields, isContent))
		})
	})
}

// refill gives a ConfigMap or a Secret other content.
func refill(r *run, p *Plan, target *unstructured.Unstructured) *disturbance {
	return r.changeAndRevert(p, target, func(live *unstructured.Unstructured) error {
		data := withOtherContent(live)
		if len(data) == 0 {
			return fmt.Errorf("%s %s has no content that could be another", live.GetKind(), live.GetName())
		}
		return unstructured.SetNestedMap(live.Object, data, "data")
	})
}

// withOtherContent returns the data of a ConfigMap or a Secret with other values; nil if it has none, or must not change.
func withOtherContent(object *unstructured.Unstructured) map[string]any {
	kind := object.GroupVersionKind().GroupKind().String()
	if immutable, _, _ := unstructured.NestedBool(object.Object, "immutable"); immutable || kind != "ConfigMap" && kind != "Secret" {
		return nil
	}
	if object.Object["type"] == "kubernetes.io/service-account-token" {
		return nil
	}
	data, _, _ := unstructured.NestedMap(object.Object, "data")
	changed := false
	for name, value := range data {
		text, isText := value.(string)
		if !isText {
			continue
		}
		if kind == "Secret" {
			plain, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				continue
			}
			text = string(plain)
		}
		other := otherText(text)
		changed = changed || other != text
		if kind == "Secret" {
			other = base64.StdEncoding.EncodeToString([]byte(other))
		}
		data[name] = other
	}
	if !changed {
		return nil
	}
	return data
}

// otherText returns a text that means much the same to whoever reads it, and is another: another last digit, one more letter, or one
// more line. Switches and binary data stay as they are.
func otherText(text string) string {
	last, size := utf8.DecodeLastRuneInString(text)
	switch {
	case text == "" || !utf8.ValidString(text) || slices.Contains([]string{"true", "false", "yes", "no", "on", "off"}, strings.ToLower(text)):
		return text
	case strings.Contains(text, "\n"): // a file, such as a certificate
		return text + "\n"
	case last >= '0' && last <= '9':
		return text[:len(text)-size] + string('0'+(last-'0'+1)%10)
	case unicode.IsLetter(last):
		return text + "2"
	default: // such as the end of a document in JSON
		return text + "\n"
	}
}
