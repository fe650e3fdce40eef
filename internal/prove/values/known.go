// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"regexp"
	"slices"
	"strings"
)

// knownType is a type of property with values that are known to be good or bad for it.
type knownType struct {
	matches func(site) bool
	propose func(*walker, site)
	// closed types are proposed as a whole: their optional properties are not made up from the schema.
	closed bool
}

// known are the types in the order in which they are tried.
var known []knownType

func init() { known = slices.Concat(podTypes, scalarTypes) }

// has reports whether the schema of a property has all of some properties.
func has(schema *props, names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { _, has := schema.Properties[name]; return !has })
}

// isList reports whether a property is a list of objects with some properties.
func isList(schema *props, names ...string) bool {
	items := itemsOf(schema)
	return schema.Type == "array" && items != nil && has(items, names...)
}

// isText reports whether a property is a free string.
func isText(schema *props) bool { return schema.Type == "string" && len(schema.Enum) == 0 }

// ends reports whether a name is one of some words, or ends with one in camel case.
func ends(name string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		return strings.EqualFold(name, word) || strings.HasSuffix(name, strings.ToUpper(word[:1])+word[1:])
	})
}

// last returns the last segment of the path, which for values of maps is their key.
func (s site) last() string {
	if len(s.path) == 0 {
		return ""
	}
	return s.path[len(s.path)-1]
}

var (
	quantityPattern = regexp.MustCompile(`\[?(numk|KMGTPE|kMGTPE)`)
	storageName     = regexp.MustCompile(`(?i)(storage|size|capacity|volume|disk)`)
	quantityName    = regexp.MustCompile(`(?i)^(.*(storage|memory|cpu|diskSize|volumeSize|storageSize|capacity)|size)$`)
	portName        = regexp.MustCompile(`^(.*Port|port|ports)$`)
	durationName    = regexp.MustCompile(`(?i)(timeout|interval|duration|period|delay|ttl|retention)$`)
	cronName        = regexp.MustCompile(`(?i)(schedule|cron|cronExpression)$`)
	hostName        = regexp.MustCompile(`(?i)(host|hosts|hostname|domain|fqdn)$`)
	addressName     = regexp.MustCompile(`(?i)(url|uri|endpoint)$`)
	secretName      = regexp.MustCompile(`(?i)(secret|secretName|secretRef|secretKeyRef|pullSecrets|credentials)$`)
	configName      = regexp.MustCompile(`(?i)(configMap|configMapName|configMapRef|configMapKeyRef)$`)
	accountName     = regexp.MustCompile(`(?i)(serviceAccount|serviceAccountName)$`)
	className       = regexp.MustCompile(`(?i)(class|className)$`)
	schedulerName   = regexp.MustCompile(`(?i)schedulerName$`)
	claimName       = regexp.MustCompile(`(?i)(claimName|existingClaim)$`)
	writtenName     = regexp.MustCompile(`(?i)^(output|target|destination|generate)`)
	referenceName   = regexp.MustCompile(`(Ref|Reference|From)$`)
	labelsName      = regexp.MustCompile(`(?i)(labels|selector)$`)
	annotationsName = regexp.MustCompile(`(?i)annotations$`)
)

// isQuantity reports whether a property is a resource.Quantity.
func isQuantity(s site) bool {
	if !s.schema.XIntOrString && !isText(s.schema) {
		return false
	}
	if quantityPattern.MatchString(s.schema.Pattern) {
		return true
	}
	return isText(s.schema) && (quantityName.MatchString(s.name) || quantityName.MatchString(s.last()))
}

// isReplicas reports whether a property is a number of pods.
func isReplicas(w *walker, s site) bool {
	if s.schema.Type != "integer" || s.element {
		return false
	}
	if path := w.options.ReplicasPath; path != "" && strings.TrimPrefix(path, ".") == strings.Join(s.path, ".") {
		return true
	}
	return !strings.HasPrefix(s.name, "max") && ends(s.name, "replicas", "size", "count", "instances", "members", "nodes")
}

// isImage reports whether a property names a container image.
func isImage(s site) bool { return isText(s.schema) && ends(s.name, "image") }

// isTag reports whether a property is the tag of an image whose repository is beside it.
func isTag(s site) bool {
	return isText(s.schema) && s.around != nil && (s.name == "tag" || s.name == "version") &&
		(has(s.around, "repository") || ends(s.in, "image"))
}

// reference returns what a string names: a secret, a ConfigMap and so on, or "". What the operator writes itself need not
// exist.
func reference(name, in string) string {
	if writtenName.MatchString(in) || writtenName.MatchString(name) {
		return ""
	}
	if name == "name" || name == "key" {
		if in == "" {
			return ""
		}
		name = in
		if referenceName.MatchString(in) && !secretName.MatchString(in) && !configName.MatchString(in) {
			return "object"
		}
	}
	switch {
	case secretName.MatchString(name):
		return "secret"
	case configName.MatchString(name):
		return "configmap"
	case accountName.MatchString(name):
		return "serviceaccount"
	case claimName.MatchString(name):
		return "claim"
	case className.MatchString(name):
		return "class"
	case schedulerName.MatchString(name):
		return "scheduler"
	default:
		return ""
	}
}

// sampleOf returns a value for a property that is known by its name.
func sampleOf(schema *props, name string) (value any, guessed, ok bool) {
	in := ""
	if before, after, cut := strings.Cut(name, "."); cut {
		in, name = before, after
	}
	s := site{schema: schema, name: name, in: in}
	switch {
	case isQuantity(s) && storageName.MatchString(name):
		return "1Gi", false, true
	case isQuantity(s):
		return "1", false, true
	case portName.MatchString(name) && (schema.Type == "integer" || schema.XIntOrString):
		if name == "nodePort" {
			return int64(30080), false, true
		}
		return int64(8080), false, true
	case !isText(schema):
		return nil, false, false
	case isImage(s):
		return "busybox:1.36", false, true
	case reference(name, in) != "":
		return "example", true, true
	case cronName.MatchString(name):
		return "0 3 * * *", false, true
	case schema.Format == "duration", durationName.MatchString(name):
		return "30s", false, true
	case hostName.MatchString(name):
		return "app.example.com", false, true
	case addressName.MatchString(name):
		return "https://example.com", true, true
	case name == "topologyKey":
		return "kubernetes.io/hostname", false, true
	case name == "operator" && schema.Pattern == "":
		return "Exists", false, true
	case ends(name, "path"):
		return "/example", false, true
	case ends(name, "name"):
		return "example", false, true
	default:
		return nil, false, false
	}
}
