// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compare compares the end states of two runs of the same scenario. Values that always differ between runs
// are normalized: times, UIDs, addresses, random names. Other differences between undisturbed runs are learned and
// masked.
package compare

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/prove/world"
)

// Shape is the normalized state of a cluster. Objects from before the scenario are not part of it, unless they have
// changed.
type Shape struct {
	// Objects are the fields of each object, by its name as Name returns it.
	Objects map[string]Fields `json:"objects"`
	// Counts are how many objects with random names there are.
	Counts map[string]int `json:"counts,omitempty"`
}

// Fields are the leaves of an object by their paths.
type Fields map[string]string

// ShapeOf normalizes a state. Objects from before are part of it only if they were changed or deleted. Addresses and times that are
// known are not replaced: see [Texts].
func ShapeOf(state, before world.State, known ...string) Shape {
	shape := Shape{Objects: map[string]Fields{}, Counts: map[string]int{}}
	uids := map[string]string{}
	for key, object := range state {
		uids[string(object.GetUID())] = key.String()
	}
	for key, object := range state {
		if old, was := before[key]; was && (old.GetResourceVersion() == object.GetResourceVersion() || sameFields(fieldsOf(old, uids, known...), fieldsOf(object, uids, known...))) {
			continue
		}
		if isHistory(key, object) {
			continue
		}
		name, random := Name(key, object)
		if random {
			if phase, _, _ := unstructured.NestedString(object.Object, "status", "phase"); key.Group == "" && key.Resource == "pods" && phase == "Failed" {
				name += " that failed" // it does not run again
			}
			shape.Counts[name]++
			continue
		}
		shape.Objects[name] = fieldsOf(object, uids, known...)
	}
	for key, object := range before {
		if _, still := state[key]; !still {
			name, random := Name(key, object)
			if !random {
				shape.Objects[name] = Fields{"": "gone, although it was there before"}
			}
		}
	}
	return shape
}

// isHistory reports whether an object is kept only for rollbacks.
func isHistory(key world.Key, object *unstructured.Unstructured) bool {
	replicas, found, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	return key.Group == "apps" && key.Resource == "replicasets" && found && replicas == 0
}

func sameFields(a, b Fields) bool {
	if len(a) != len(b) {
		return false
	}
	for path, value := range a {
		if b[path] != value {
			return false
		}
	}
	return true
}

// Name names an object the same in all runs. Objects whose name the API server completes share one name, and are only counted.
func Name(key world.Key, object *unstructured.Unstructured) (name string, random bool) {
	if deployment := deploymentOf(key, object); deployment != "" {
		key.Name = deployment + "-*"
		return key.String(), true
	}
	if prefix := object.GetGenerateName(); prefix != "" && strings.HasPrefix(key.Name, prefix) {
		key.Name = prefix + "*"
		return key.String(), true
	}
	// Such as a PersistentVolume that was provisioned for a claim, whose UID is in its name.
	if name := uuid.ReplaceAllString(key.Name, "*"); name != key.Name {
		key.Name = name
		return key.String(), true
	}
	return key.String(), false
}

// deploymentOf is the Deployment that an object is a ReplicaSet or a pod of; empty if it is of none. The hash in its name says what
// the template is, which the Deployment shows as well. It is another one if the name was taken: by a ReplicaSet of a Deployment of
// the same name that was deleted a moment ago.
func deploymentOf(key world.Key, object *unstructured.Unstructured) string {
	if key.Resource != "replicasets" && key.Resource != "pods" {
		return ""
	}
	hash := object.GetLabels()["pod-template-hash"]
	begins, _, found := strings.Cut(key.Name, "-"+hash)
	if hash == "" || !found {
		return ""
	}
	return begins
}

var (
	uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	// ignored are paths that every write changes, or that repeat other fields.
	ignored = []string{
		"metadata.uid", "metadata.resourceVersion", "metadata.creationTimestamp", "metadata.generation", "metadata.managedFields", "metadata.selfLink",
		"metadata.generateName", "metadata.annotations." + lastApplied,
		// How often something was rolled out shows in how many ReplicaSets were created.
		"metadata.annotations.deployment.kubernetes.io/revision", "metadata.annotations.deployment.kubernetes.io/revision-history",
		// The API server raises it with each change of the template of a DaemonSet, also of one that is taken back.
		"metadata.annotations.deprecated.daemonset.template.generation",
		"status.collisionCount",
	}
	// restarts are status fields about the past of containers. No operator can change them.
	restarts = regexp.MustCompile(`^status\.([a-z]+C|c)ontainerStatuses\[[^\]]*\]\.(lastState|restartCount)$`)
	// backends are the pods and nodes behind addresses of Endpoints and EndpointSlices: their names are random, and any node will do.
	backends = regexp.MustCompile(`^(subsets|endpoints)\[.*\.(nodeName|zone|targetRef)$`)
	// handled are other names for observedGeneration. Further numbers may be generations of other objects.
	handled = regexp.MustCompile(`^(last)?(Observed|[rR]econciled|[pP]rocessed|[hH]andled|[sS]een|[sS]ynced)Generation$`)
	// aNode is a simulated node in a text, and what is before it: any node will do, unless the scenario names it. Longer
	// names may end like one, such as that of the pod redis-node-0.
	aNode = regexp.MustCompile(`(^|[^A-Za-z0-9_.-])(node-\d+)\b`)
	// onlyNode is a key that is a simulated node.
	onlyNode = regexp.MustCompile(`^node-\d+$`)
	// replicaSet is how a Deployment names one of its own, and ipv4 an address in a text.
	replicaSet  = regexp.MustCompile(`ReplicaSet "([a-z0-9.-]+)-[a-z0-9]+"`)
	ipv4        = regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`)
	lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
)

// fieldsOf flattens an object.
func fieldsOf(object *unstructured.Unstructured, uids map[string]string, known ...string) Fields {
	f := flattening{fields: Fields{}, uids: uids, generation: object.GetGeneration(), hidden: object.GetKind() == "Secret"}
	if kind := object.GetKind(); kind != "Pod" && kind != "Node" { // which get any address
		f.known = known
	}
	for key, value := range object.Object {
		f.add(key, key, value)
	}
	return f.fields
}

type flattening struct {
	fields     Fields
	uids       map[string]string
	generation int64
	hidden     bool // the data of a Secret is not shown
	known      []string
}

// Nudge is an annotation that campaigns write to custom resources, and remove at once. Some operators copy annotations to the objects
// that they make, and never remove them there.
const Nudge = "opdock.dev/nudge"

func (f *flattening) add(path, name string, value any) {
	if name == Nudge || slices.Contains(ignored, path) || restarts.MatchString(path) || backends.MatchString(path) {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 && !strings.HasPrefix(path, "status.") { // where it says no more than if it were absent
			f.fields[path] = "{}"
		}
		nodes := f.nodesIn(maps.Keys(v))
		for key, one := range v {
			f.add(path+"."+cmp.Or(nodes[key], key), key, one)
		}
	case []any:
		f.addList(path, v)
	default:
		f.fields[path] = f.leaf(path, name, value)
	}
}

// addList names the elements of a list by their keys, so another order is not a difference in all of them.
func (f *flattening) addList(path string, list []any) {
	if len(list) == 0 {
		f.fields[path] = "[]"
	}
	keys := keysOf(list)
	nodes := f.nodesIn(slices.Values(keys))
	for i, one := range list {
		index := strconv.Itoa(i)
		if keys != nil {
			index = cmp.Or(nodes[keys[i]], keys[i])
		}
		f.add(path+"["+index+"]", index, one)
	}
}

// nodesIn returns other names for the keys that are simulated nodes: pods may be on other nodes in each run, so the
// first node that has a value is compared with the first.
func (f *flattening) nodesIn(keys iter.Seq[string]) map[string]string {
	var nodes []string
	for key := range keys {
		if onlyNode.MatchString(key) && !slices.Contains(f.known, key) {
			nodes = append(nodes, key)
		}
	}
	slices.Sort(nodes)
	names := map[string]string{}
	for i, node := range nodes {
		names[node] = fmt.Sprintf("(node %d)", i+1)
	}
	return names
}

// keysOf are the values of the field that is different in each element of a list of objects; nil if there is none.
func keysOf(list []any) []string {
	for _, key := range []string{"type", "name", "key"} {
		var keys []string
		seen := map[string]bool{}
		for _, one := range list {
			element, _ := one.(map[string]any)
			if value, found := element[key].(string); found {
				keys, seen[value] = append(keys, value), true
			}
		}
		if len(seen) == len(list) {
			return keys
		}
	}
	return nil
}

// behind is the observedGeneration of a condition of a type other than Ready that is about an older generation.
const behind = "behind"

// aHash is a hash as programs write it.
var aHash = regexp.MustCompile(`^[0-9a-f]{6,}$`)

func (f *flattening) leaf(path, name string, value any) string {
	if number, ok := value.(int64); ok && f.generation > 0 && (name == "observedGeneration" || path == "status."+name && handled.MatchString(name)) {
		switch {
		case number == f.generation:
			return "current"
		case strings.HasPrefix(path, "status.conditions[") && !strings.HasPrefix(path, "status.conditions[Ready]"):
			return behind // it may be about something that has not changed since
		}
		return fmt.Sprintf("%d behind", f.generation-number)
	}
	switch name {
	case "nodePort", "healthCheckNodePort":
		if number, ok := value.(int64); ok && number != 0 && !slices.Contains(f.known, strconv.FormatInt(number, 10)) {
			return "(allocated)"
		}
	case "uid":
		if uid, ok := value.(string); ok && strings.HasPrefix(path, "metadata.ownerReferences") {
			if owner := f.uids[uid]; owner != "" {
				return "of " + owner
			}
			return "of an object that is gone"
		}
	}
	text, ok := value.(string)
	if !ok {
		encoded, err := json.Marshal(value)
		if err != nil {
			return fmt.Sprint(value)
		}
		return string(encoded)
	}
	if before, rest, found := strings.Cut(text, "-"); found && strings.HasPrefix(path, "status.") && before == strconv.FormatInt(f.generation, 10) && aHash.MatchString(rest) {
		text = "(generation)-" + rest // the hash is one of the rest of the metadata
	}
	if f.hidden && (strings.HasPrefix(path, "data.") || strings.HasPrefix(path, "stringData.")) {
		sum := sha256.Sum256([]byte(text))
		return "(hidden, " + hex.EncodeToString(sum[:4]) + ")"
	}
	if strings.HasPrefix(path, "data.") {
		text = ipv4.ReplaceAllStringFunc(text, func(address string) string { // lists of them
			if slices.Contains(f.known, address) {
				return address
			}
			return "(address)"
		})
	}
	if !strings.HasPrefix(path, "metadata.name") && !strings.HasPrefix(path, "metadata.labels.") {
		text = aNode.ReplaceAllStringFunc(text, func(found string) string {
			at := strings.Index(found, "node-")
			if slices.Contains(f.known, found[at:]) {
				return found
			}
			return found[:at] + "(node)"
		})
	}
	if slices.Contains(f.known, text) && name != "clusterIP" && !strings.HasPrefix(path, "spec.clusterIPs[") { // which are allocated
		return text
	}
	return normalize(text)
}

// Texts returns the addresses, times, nodes and node ports in a value. Where they occur in a scenario, they were chosen and not allocated, so the same
// texts in other objects must be compared.
func Texts(value any) (found []string) {
	switch v := value.(type) {
	case map[string]any:
		for key, one := range v {
			if onlyNode.MatchString(key) {
				found = append(found, key)
			}
			found = append(found, Texts(one)...)
		}
	case []any:
		for _, one := range v {
			found = append(found, Texts(one)...)
		}
	case int64:
		if firstNodePort <= v && v <= lastNodePort {
			return []string{strconv.FormatInt(v, 10)}
		}
	case string:
		if isTime(v) || isAddress(v) {
			return []string{v}
		}
		found = ipv4.FindAllString(v, -1)
		for _, node := range aNode.FindAllStringSubmatch(v, -1) {
			found = append(found, node[2])
		}
	}
	return found
}

// firstNodePort and lastNodePort are the range of node ports by default.
const firstNodePort, lastNodePort = 30000, 32767

// normalize replaces values that differ in each run.
func normalize(text string) string {
	if isTime(text) {
		return "(time)"
	}
	if isAddress(text) {
		return "(address)"
	}
	return replicaSet.ReplaceAllString(uuid.ReplaceAllString(text, "(uid)"), `ReplicaSet "$1-*"`)
}

func isTime(text string) bool {
	for _, layout := range []string{time.RFC3339Nano, metav1.RFC3339Micro} {
		if _, err := time.Parse(layout, text); err == nil {
			return true
		}
	}
	return false
}

func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil && text != "0.0.0.0" && text != "::"
}
