// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// edit is another value for a field.
type edit struct {
	path  []string
	value any
}

// mostEdits is how many fields of an object are changed, one after the other.
const mostEdits = 4

// edits change fields of an object that the operator has set itself.
func (c *campaign) edits(of child) []edit {
	if of.object.Object["immutable"] == true {
		return nil
	}
	found := edits(of.object, c.sentFor(of))
	// A value that differs between undisturbed runs is not compared. In a Secret, it was made once, such as a password, and the
	// operator cannot make the same one again.
	hidden := c.mask.Fields[of.key.String()]
	generated := of.key.Kind == "Secret" && slices.ContainsFunc(slices.Collect(maps.Keys(hidden)), func(path string) bool { return strings.HasPrefix(path, "data.") })
	// The replicas of a workload with an autoscaler are the autoscaler's: an operator must not set them back.
	scaled := slices.ContainsFunc(c.reference, func(s *stage) bool { return slices.Contains(autoscaled(s.state), of.key.String()) })
	found = slices.DeleteFunc(found, func(e edit) bool {
		path := strings.Join(e.path, ".")
		return isData(e.path) && (generated || hidden[path]) || scaled && path == "spec.replicas" || isReplicaSet(of.key) && path != "spec.replicas"
	})
	return mostTelling(found)
}

// sentFor returns what the operator sent to make an object; nothing if it has not made it.
func (c *campaign) sentFor(of child) (sent []map[string]any) {
	made := false
	for _, s := range c.reference {
		for i := range s.writes {
			w := &s.writes[i]
			if w.sent == nil || w.Subresource != "" || w.Group != of.key.Group || w.Resource != of.key.Resource || w.Namespace != of.key.Namespace || w.Name != of.key.Name {
				continue
			}
			made = made || w.Verb == "create" || w.Verb == "apply"
			if w.Verb != "update" { // which sends back what the API server has added
				sent = append(sent, w.sent)
			}
		}
	}
	if !made {
		return nil
	}
	return sent
}

// edits are all changes of fields that the operator manages and has sent. The API server adds its defaults to the managed fields of a
// client that creates an object, and no operator has to restore them. Without anything sent, managed fields must do.
func edits(object *unstructured.Unstructured, sent []map[string]any) (found []edit) {
	own := fieldpath.NewSet()
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource != "" || entry.FieldsV1 == nil || strings.HasPrefix(entry.Manager, "kube-") || entry.Manager == manager {
			continue
		}
		var set fieldpath.Set
		if set.FromJSON(entry.FieldsV1.GetRawReader()) == nil {
			own = own.Union(&set)
		}
	}
	secret := object.GetKind() == "Secret"
	own.Leaves().Iterate(func(path fieldpath.Path) {
		names, value := follow(object.Object, path)
		if len(names) == 0 || names[0] == "metadata" || names[0] == "status" || slices.Contains(fixed, names[len(names)-1]) || slices.Contains(names, "selector") || slices.Contains(names, "labels") {
			return
		}
		if sent != nil && !slices.ContainsFunc(sent, func(one map[string]any) bool { return has(one, path, value) }) {
			return
		}
		if other := another(names, value, secret); other != nil {
			found = append(found, edit{names, other})
		}
	})
	return found
}

// has reports whether an object that was sent sets a field. What it leaves empty, the API server sets.
func has(sent map[string]any, path fieldpath.Path, now any) bool {
	_, value := follow(sent, path)
	if value == nil && len(path) > 1 && path[0].FieldName != nil && *path[0].FieldName == "data" {
		_, value = follow(map[string]any{"data": sent["stringData"]}, path)
	}
	switch v := value.(type) {
	case nil:
		return false
	case string:
		return v != "" || now == ""
	case bool:
		return v || now == false
	}
	return fmt.Sprint(value) != "0" || fmt.Sprint(now) == "0"
}

// another is another value of a field; nil if none is known to be accepted.
func another(names []string, value any, secret bool) any {
	switch v := value.(type) {
	case int64:
		return v + 1
	case bool:
		return !v
	case string:
		switch {
		case secret && isData(names): // no plan holds what is in a Secret
			return base64.StdEncoding.EncodeToString([]byte("changed by opdock prove"))
		case names[0] == "binaryData":
			return base64.StdEncoding.EncodeToString([]byte(v))
		case isData(names):
			return v + "x"
		case quantity.MatchString(v):
			return anotherQuantity(names, v)
		case v != "" && names[0] != "type" && !enumerated.MatchString(v):
			return v + "x"
		}
	}
	return nil
}

// isData reports whether a field is an entry of a ConfigMap or a Secret.
func isData(names []string) bool { return len(names) == 2 && names[0] == "data" } //nolint:mnd // and its key

// anotherQuantity keeps requests below limits. Volumes cannot shrink again, so their sizes stay.
func anotherQuantity(names []string, text string) any {
	parsed, err := resource.ParseQuantity(text)
	if last := strings.ToLower(names[len(names)-1]); err != nil || last == "storage" || last == "size" || strings.HasSuffix(last, "storagesize") {
		return nil
	}
	changed := parsed.DeepCopy()
	if slices.Contains(names, "requests") {
		changed = *resource.NewMilliQuantity(max(parsed.MilliValue()/2, 1), parsed.Format) //nolint:mnd // the half
	} else {
		changed.Add(parsed)
	}
	if changed.Cmp(parsed) == 0 {
		return nil
	}
	return changed.String()
}

// quantity is how quantities are written; a number alone may be anything.
var quantity = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?(m|k|[KMGTPE]i?)$`)

// mostTelling returns a few edits: of what makes an object do what it does first, one of each, and then those nearest to the root.
func mostTelling(found []edit) []edit {
	slices.SortStableFunc(found, func(a, b edit) int {
		return cmp.Or(cmp.Compare(len(a.path), len(b.path)), cmp.Compare(strings.Join(a.path, "."), strings.Join(b.path, ".")))
	})
	nth := map[string]int{} // of its class, by path
	seen := map[int]int{}
	for _, one := range found {
		class := classOf(one.path)
		nth[strings.Join(one.path, ".")] = seen[class]
		seen[class]++
	}
	slices.SortStableFunc(found, func(a, b edit) int {
		return cmp.Or(cmp.Compare(nth[strings.Join(a.path, ".")], nth[strings.Join(b.path, ".")]), cmp.Compare(classOf(a.path), classOf(b.path)))
	})
	return found[:min(len(found), mostEdits)]
}

// classOf ranks fields by what a change of them does.
func classOf(names []string) int {
	classes := []bool{names[len(names)-1] == "image", slices.Contains(names, "env"), isData(names), names[len(names)-1] == "replicas", true}
	return slices.Index(classes, true)
}

// enumerated are values like ClientIP, which are mostly one of a few that the API server takes.
var enumerated = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)

// fixed are fields that identify elements of lists, or that take only certain values.
var fixed = []string{"name", "protocol", "type", "kind", "apiVersion", "apiGroup", "containerPort", "imagePullPolicy", "restartPolicy", "dnsPolicy", "clusterIP", "policy", "pathType", "operator", "whenUnsatisfiable", "scope"}

// follow finds the value that a path of managed fields leads to, and the path with the indexes of lists.
func follow(value any, path fieldpath.Path) (names []string, found any) {
	for _, element := range path {
		switch v := value.(type) {
		case map[string]any:
			if element.FieldName == nil {
				return nil, nil
			}
			names, value = append(names, *element.FieldName), v[*element.FieldName]
		case []any:
			index := indexOf(v, element)
			if index < 0 {
				return nil, nil
			}
			names, value = append(names, strconv.Itoa(index)), v[index]
		default:
			return nil, nil
		}
	}
	return names, value
}

func indexOf(list []any, element fieldpath.PathElement) int {
	if element.Key == nil {
		return -1
	}
	return slices.IndexFunc(list, func(one any) bool {
		fields, ok := one.(map[string]any)
		if !ok {
			return false
		}
		known := false
		for _, key := range *element.Key {
			value, there := fields[key.Name]
			if there && fmt.Sprint(value) != fmt.Sprint(key.Value.Unstructured()) {
				return false
			}
			known = known || there // the API server sets what is not, such as the protocol of a port
		}
		return known
	})
}
