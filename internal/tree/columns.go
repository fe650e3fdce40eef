// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	"github.com/opdock/opdock/internal/crdspec"
)

// Columns are the printer columns of a kind: the fields that its author wants kubectl to show.
type Columns []column

type column struct {
	name string
	path *jsonpath.JSONPath
}

// shownElsewhere are columns that the tree already shows in another place.
var shownElsewhere = map[string]bool{"Ready": true, "Age": true}

// ColumnsOf returns the columns that a CustomResourceDefinition defines for a version, without those for -o wide.
func ColumnsOf(definition *unstructured.Unstructured, version string) (Columns, error) {
	var columns Columns
	for _, one := range crdspec.Of(definition).Versions {
		if one.Name != version {
			continue
		}
		list, _, _ := unstructured.NestedSlice(one.Fields, "additionalPrinterColumns")
		for _, item := range list {
			fields, _ := item.(map[string]any)
			name, _, _ := unstructured.NestedString(fields, "name")
			path, _, _ := unstructured.NestedString(fields, "jsonPath")
			if priority, given := fields["priority"]; given && fmt.Sprint(priority) != "0" || shownElsewhere[name] {
				continue
			}
			parsed := jsonpath.New(name).AllowMissingKeys(true)
			if err := parsed.Parse("{" + path + "}"); err != nil {
				return nil, fmt.Errorf("reading column %s of %s: %w", name, definition.GetName(), err)
			}
			columns = append(columns, column{name: name, path: parsed})
		}
	}
	return columns, nil
}

// describe returns text such as "size 2, available 2, http://web.default.svc".
func (c Columns) describe(object *unstructured.Unstructured) string {
	var texts []string
	for _, column := range c {
		var value strings.Builder
		if err := column.path.Execute(&value, object.Object); err != nil || value.Len() == 0 {
			continue
		}
		text := value.String()
		if !strings.Contains(text, "://") { // an address needs no label
			text = strings.ToLower(column.name) + " " + text
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}
