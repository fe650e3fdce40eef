// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// badName is a name that Kubernetes refuses for every object.
const badName = "Not_A_Name!"

// scalarTypes are properties with one value.
var scalarTypes = []knownType{
	{propose: proposeReplicas, matches: func(s site) bool { return s.schema.Type == "integer" && !s.element && len(s.schema.Enum) == 0 }},
	{propose: proposeImage, matches: isImage},
	{propose: proposeTag, matches: isTag},
	{propose: proposeQuantity, matches: isQuantity},
	{propose: proposeTargetPort, matches: func(s site) bool { return s.schema.XIntOrString && portName.MatchString(s.name) }},
	{propose: proposePercentage, matches: func(s site) bool { return s.schema.XIntOrString }},
	{propose: proposeServiceType, matches: func(s site) bool {
		return isText(s.schema) && (s.name == "serviceType" || s.name == "type" && ends(s.in, "service"))
	}},
	{propose: proposeCron, matches: func(s site) bool { return isText(s.schema) && cronName.MatchString(s.name) }},
	{propose: proposeDuration, matches: func(s site) bool {
		return isText(s.schema) && (s.schema.Format == "duration" || s.schema.Format == "" && durationName.MatchString(s.name))
	}},
	{propose: proposeReference, matches: func(s site) bool { return isText(s.schema) && s.schema.Format == "" && reference(s.name, s.in) != "" }},
	{propose: proposeHost, matches: func(s site) bool { return isText(s.schema) && hostName.MatchString(s.name) }},
	{propose: proposeAddress, matches: func(s site) bool { return isText(s.schema) && addressName.MatchString(s.name) }},
	{propose: proposeTimeZone, matches: func(s site) bool { return isText(s.schema) && ends(s.name, "timeZone") }},
	{propose: proposeName, matches: func(s site) bool { return isText(s.schema) && !s.element && ends(s.name, "name") }},
	{propose: proposeLabels, matches: func(s site) bool {
		return kindOf(s.schema) == "map" && !s.element && (labelsName.MatchString(s.name) || annotationsName.MatchString(s.name))
	}},
}

// proposeReplicas scales. Other whole numbers, ports among them, get what else is known of them.
func proposeReplicas(w *walker, s site) {
	if !isReplicas(w, s) {
		proposePort(w, s)
		return
	}
	current, known := s.current().(int64)
	if !known {
		current = 1
	}
	if up := min(current+2, w.options.MaxReplicas); up > current {
		w.add(s, groupScaleUp, Valid, "scale up", up, current+1)
	}
	switch {
	case current > 1:
		w.add(s, groupScaleDown, Valid, "scale down", current-1)
	case current == 1:
		w.add(s, groupScaleDown, Limit, "scale to zero", int64(0))
	}
	if current > 2 {
		w.add(s, groupScaleDown, Valid, "scale down to one", int64(1))
	}
}

func proposePort(w *walker, s site) {
	if !portName.MatchString(s.name) {
		return
	}
	if s.name == "nodePort" {
		w.valid(s, "another port", int64(30077), int64(30078))
		w.misuse(s, "a port outside the range of node ports", int64(80))
		return
	}
	w.valid(s, "another port", int64(8081), int64(8082))
	w.misuse(s, "a port that cannot exist", int64(70000))
	w.misuse(s, "port 0", int64(0))
}

func proposeTargetPort(w *walker, s site) {
	w.valid(s, "another port", int64(8081))
	w.limit(s, "a port by its name", "http")
	w.misuse(s, "a port that does not exist", "no-such-port")
	w.misuse(s, "a port that cannot exist", int64(70000))
	w.misuse(s, "a number in quotes", "8080")
}

func proposePercentage(w *walker, s site) {
	for _, value := range []any{int64(1), int64(2), "50%", "25%"} {
		w.valid(s, "another amount", value)
	}
	for _, value := range []any{int64(0), "0%", "100%"} {
		w.limit(s, "none or all", value)
	}
	if ends(s.name, "surge") {
		w.limit(s, "a percentage above 100", "150%")
	} else {
		w.misuse(s, "a percentage above 100", "150%")
	}
	w.misuse(s, "a negative amount", int64(-1), "-10%")
	w.misuse(s, "neither a number nor a percentage", "half")
}

var lastNumber = regexp.MustCompile(`^(.*?)(\d+)([^\d]*)$`)

// otherTag returns a tag like the given one, with its last number one higher.
func otherTag(tag string) string {
	if parts := lastNumber.FindStringSubmatch(tag); parts != nil {
		if number, err := strconv.Atoi(parts[2]); err == nil {
			return parts[1] + strconv.Itoa(number+1) + parts[3]
		}
	}
	return "2"
}

const (
	missingImage   = "no-such-image:0"
	missingTag     = "no-such-tag"
	malformedImage = "Not::An@Image"
)

// MissingImage is a part of the name of an image that cannot be pulled; empty if the change is not about one.
func (c Change) MissingImage() string {
	name, _ := c.Value.(string)
	if c.Class != Misuse {
		return ""
	}
	for _, one := range []string{missingImage, missingTag, malformedImage} {
		if strings.HasSuffix(name, one) {
			return one
		}
	}
	return ""
}

func proposeImage(w *walker, s site) {
	current, _ := s.current().(string)
	repository, _, _ := strings.Cut(current, "@")
	tag := ""
	if colon := strings.LastIndex(repository, ":"); colon > strings.LastIndex(repository, "/") {
		repository, tag = repository[:colon], repository[colon+1:]
	}
	if repository == "" {
		repository = "busybox"
	}
	w.add(s, groupImage, Valid, "image change", repository+":"+otherTag(tag))
	w.limit(s, "an image without a tag", repository)
	w.limit(s, "an image by its digest", repository+"@sha256:"+strings.Repeat("0123456789abcdef", 4))
	w.misuse(s, "an image that cannot be pulled", "missing.invalid/"+missingImage, missingImage)
	w.misuse(s, "an image name that is malformed", malformedImage, "Not-An-Image")
	w.misuse(s, "an image with a space behind it", repository+":1 ")
}

func proposeTag(w *walker, s site) {
	current, _ := s.current().(string)
	w.add(s, groupImage, Valid, "image change", otherTag(current))
	w.misuse(s, "a tag that does not exist", missingTag)
	w.misuse(s, "a tag that is malformed", "not a tag", "-:-")
}

func proposeQuantity(w *walker, s site) {
	// A limit of a size is not a size.
	storage := (storageName.MatchString(s.name) || storageName.MatchString(s.last())) && !ends(s.name, "limit")
	current, err := resource.ParseQuantity(text(s.current()))
	if err == nil && !current.IsZero() {
		double, half := current.DeepCopy(), *resource.NewMilliQuantity(current.MilliValue()/2, current.Format)
		double.Add(current)
		if current.MilliValue()%2000 == 0 || storage {
			half = *resource.NewQuantity(max(1, current.Value()/2), current.Format)
		}
		w.valid(s, "a quantity that grows", double.String())
		if storage {
			w.misuse(s, "a volume that shrinks", half.String())
		} else {
			w.valid(s, "a quantity that shrinks", half.String())
		}
		w.limit(s, "the same quantity written in another way", sameQuantity(current))
	} else if sample, _, ok := sampleOf(s.schema, s.last()); ok {
		w.valid(s, "set", sample)
	}
	w.limit(s, "zero", "0")
	w.limit(s, "a very small quantity", "1m", "1")
	w.misuse(s, "more than there is", "1Ei")
	w.misuse(s, "negative", "-1")
	w.misuse(s, "not a quantity", "lots")
	if s.schema.XIntOrString {
		w.limit(s, "a quantity as a number", int64(1))
	}
}

// sameQuantity returns a quantity as a plain number or, for one that is not whole, in thousandths.
func sameQuantity(quantity resource.Quantity) string {
	if quantity.MilliValue()%1000 == 0 {
		return strconv.FormatInt(quantity.Value(), 10)
	}
	return strconv.FormatFloat(quantity.AsApproximateFloat64(), 'f', -1, 64)
}

func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	default:
		return ""
	}
}

func proposeServiceType(w *walker, s site) {
	for _, value := range []string{"NodePort", "ClusterIP", "LoadBalancer"} {
		w.valid(s, "another type of Service", value)
	}
	w.misuse(s, "a type that needs more", "ExternalName")
	w.misuse(s, "a type that does not exist", "NoSuchType")
}

func proposeCron(w *walker, s site) {
	w.valid(s, "another schedule", "*/5 * * * *")
	w.valid(s, "a schedule by its name", "@hourly")
	w.limit(s, "a schedule once in four years", "0 0 29 2 *")
	w.misuse(s, "a schedule that never comes", "0 0 31 2 *")
	w.misuse(s, "a minute that does not exist", "61 * * * *")
	w.misuse(s, "not a schedule", "every day")
}

func proposeDuration(w *walker, s site) {
	for _, value := range []any{"45s", "10m", "1h30m"} {
		w.valid(s, "another duration", value)
	}
	w.limit(s, "zero", "0s")
	w.limit(s, "a very short duration", "1ns", "1ms", "1s")
	w.limit(s, "a very long duration", "87600h")
	w.misuse(s, "a negative duration", "-5m")
	w.misuse(s, "not a duration", "ten minutes")
	w.misuse(s, "a duration without a unit", "30")
}

// missing are names of objects that do not exist, by what they are.
var missing = map[string]struct{ name, why string }{
	"secret":         {"no-such-secret", "a secret that does not exist"},
	"configmap":      {"no-such-configmap", "a ConfigMap that does not exist"},
	"serviceaccount": {"no-such-account", "a service account that does not exist"},
	"claim":          {"no-such-claim", "a claim that does not exist"},
	"class":          {"no-such-class", "a class that does not exist"},
	"scheduler":      {"no-such-scheduler", "a scheduler that does not exist"},
	"object":         {"no-such-object", "an object that does not exist"},
}

func proposeReference(w *walker, s site) {
	if s.name == "key" {
		w.misuse(s, "a key that does not exist", "no-such-key")
		return
	}
	absent := missing[reference(s.name, s.in)]
	w.misuse(s, absent.why, absent.name)
	w.misuse(s, "a name that Kubernetes refuses", badName, "Not_A_Name", "-")
}

func proposeHost(w *walker, s site) {
	w.valid(s, "another host", "other.example.com")
	w.limit(s, "a wildcard", "*.example.com")
	w.misuse(s, "not a host", "not a host", "-..", badName)
	w.misuse(s, "a host with a scheme", "https://example.com/")
}

func proposeAddress(w *walker, s site) {
	w.misuse(s, "an address that does not exist", "https://missing.invalid:1/", "missing.invalid:1")
	w.misuse(s, "not an address", "://")
}

func proposeTimeZone(w *walker, s site) {
	w.valid(s, "another time zone", "Asia/Tokyo")
	w.misuse(s, "a time zone that does not exist", "Mars/Olympus")
}

func proposeName(w *walker, s site) {
	if current, _ := s.current().(string); current != "" {
		w.valid(s, "another name", current+"-2")
	}
	w.misuse(s, "a name that Kubernetes refuses", badName, "Not_A_Name", "-")
	if !s.closed {
		w.misuse(s, "a name that is too long for a label", strings.Repeat("a", 64))
	}
}

func proposeLabels(w *walker, s site) {
	merged := func(key, value string) object {
		entries := object{key: value}
		fields, _ := s.value.(map[string]any)
		for name, field := range fields {
			entries[name] = field
		}
		return entries
	}
	w.valid(s, "one more entry", merged("example.com/opdock", "example"))
	w.misuse(s, "a key that Kubernetes refuses", merged("-not a key-", "example"))
	if labelsName.MatchString(s.name) {
		w.misuse(s, "a value that Kubernetes refuses", merged("example.com/opdock", "not a value"))
	}
}
