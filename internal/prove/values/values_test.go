// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/golden"
)

// lines returns changes as text, one per line.
func lines(changes []Change) []string {
	var text []string
	for _, change := range changes {
		text = append(text, fmt.Sprintf("%-6s %s", change.Class, change))
	}
	return text
}

// A database has about everything that operators ask for. Read the file as the story of what would be tried.
func TestDatabase(t *testing.T) {
	changes := subjects(t)[0].propose(Options{Max: 1000})
	golden.Compare(t, "database", strings.Join(lines(changes), "\n")+"\n")
}

// proposeFor proposes changes to a spec, given the schema of the spec.
func proposeFor(t *testing.T, schema, spec string, o Options) []Change {
	t.Helper()
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte(schema), props); err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &object); err != nil {
		t.Fatal(err)
	}
	root := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"metadata": {Type: "object"}, "spec": *props, "status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"replicas": {Type: "integer"},
		}},
	}}
	whole := map[string]any{"metadata": map[string]any{"name": "a"}, "spec": object, "status": map[string]any{"replicas": int64(1)}}
	if err := Check(root, whole); err != nil {
		t.Fatal(err)
	}
	return Propose(root, whole, o)
}

func TestPropose(t *testing.T) {
	for name, test := range map[string]struct {
		schema, spec string
		options      Options
		want         []string // others may come between
		not          []string // parts of lines
	}{
		"scaling, the image, and what can be removed": {
			schema: `{type: object, properties: {replicas: {type: integer, minimum: 0}, image: {type: string}, extra: {type: object, properties: {a: {type: boolean}}}}}`,
			spec:   `{replicas: 3, image: "web:1.2", extra: {a: true}}`,
			want: []string{
				"Valid  spec.replicas = 5 (scale up)", "Valid  spec.replicas = 2 (scale down)", "Valid  spec.replicas = 1 (scale down to one)",
				`Valid  spec.image = "web:1.3" (image change)`, "Valid  remove spec.extra (removing an optional block)",
				"Limit  spec.replicas = 0 (at its minimum)", `Misuse spec.image = "missing.invalid/no-such-image:0" (an image that cannot be pulled)`,
			},
			not: []string{"status", "metadata", "spec.replicas = -1", "2147483647"},
		},
		"the scale subresource says what a replica is": {
			schema:  `{type: object, properties: {width: {type: integer}}}`,
			spec:    `{width: 1}`,
			options: Options{ReplicasPath: ".spec.width", MaxReplicas: 2},
			want:    []string{"Valid  spec.width = 2 (scale up)", "Limit  spec.width = 0 (scale to zero)", "Misuse spec.width = -1 (negative)"},
			not:     []string{"spec.width = 3", "2147483647"},
		},
		"numbers at their limits": {
			schema: `{type: object, properties: {retries: {type: integer, minimum: 2, maximum: 10, exclusiveMaximum: true, multipleOf: 2}}}`,
			spec:   `{retries: 4}`,
			want: []string{
				"Valid  remove spec.retries (removing an optional value)", "Valid  spec.retries = 6 (one more)",
				"Limit  spec.retries = 2 (at its minimum)", "Limit  spec.retries = 8 (at its maximum)",
			},
			not: []string{"= 10", "= 0", "= 5", "= -"},
		},
		"a number without limits": {
			schema: `{type: object, properties: {weight: {type: integer, format: int32}, bytes: {type: integer, format: int64}}}`,
			spec:   `{weight: 4, bytes: 1}`,
			want:   []string{"Limit  spec.bytes = 9007199254740992 (very large)", "Limit  spec.weight = 2147483647 (very large)", "Misuse spec.weight = -1 (negative)"},
		},
		"each value of an enum but the present one": {
			schema: `{type: object, properties: {mode: {type: string, enum: [a, b, c, ""]}}}`,
			spec:   `{mode: b}`,
			want:   []string{`Valid  spec.mode = "a" (another of its values)`, `Valid  spec.mode = "c" (another of its values)`, `Limit  spec.mode = "" (empty)`},
			not:    []string{`"b"`, "aaaa"},
		},
		"strings at their limits": {
			schema: `{type: object, properties: {code: {type: string, minLength: 2, maxLength: 6, pattern: '^[A-Z]+[0-9]$'}, note: {type: string}}}`,
			spec:   `{code: AB1, note: hi}`,
			want: []string{
				`Limit  spec.note = "hi-2" (another text)`, `Limit  spec.code = "A1" (`, `Limit  spec.note = "" (empty)`,
				`Limit  spec.note = "aaa`, `Limit  spec.note = "zürich-船" (not ASCII)`, `Limit  spec.code = "AAAAA1" (at its maximum length)`,
			},
			not: []string{`spec.code = ""`, "spec.code = \"a", "spec.code = \"z"},
		},
		"a default is not a change": {
			schema: `{type: object, properties: {level: {type: string, enum: [low, high], default: low}, loud: {type: boolean, default: true}}}`,
			spec:   `{level: low}`,
			want:   []string{`Valid  spec.loud = false (switched off)`, `Valid  spec.level = "high" (another of its values)`},
			not:    []string{"remove spec.level", "spec.loud = true"},
		},
		"what is beside a switch is switched on with it": {
			schema: `{type: object, properties: {cache: {type: object, properties: {enabled: {type: boolean}, ttl: {type: string}, shards: {type: object, properties: {width: {type: integer}}}}}}}`,
			spec:   `{cache: {enabled: false, ttl: 1m, shards: {width: 3}}}`,
			want: []string{
				`Valid  spec.cache.ttl = "45s" with spec.cache.enabled = true (another duration)`, `Valid  spec.cache.enabled = true (switched on)`,
				`Valid  spec.cache.shards.width = 4 with spec.cache.enabled = true (one more)`,
			},
			not: []string{"remove spec.cache.ttl with"},
		},
		"a switch that is on is left alone": {
			schema: `{type: object, properties: {cache: {type: object, properties: {enabled: {type: boolean}, ttl: {type: string}}}}}`,
			spec:   `{cache: {enabled: true, ttl: 1m}}`,
			want:   []string{`Valid  spec.cache.ttl = "45s" (another duration)`},
			not:    []string{" with "},
		},
		"an optional block has what is required, and is switched on": {
			schema: `{type: object, properties: {backup: {type: object, required: [schedule, keep], properties: {enabled: {type: boolean}, schedule: {type: string}, keep: {type: integer, minimum: 3}, zone: {type: string}}}}}`,
			spec:   `{}`,
			want: []string{
				`Valid  spec.backup = {"enabled":true,"keep":3,"schedule":"0 3 * * *"} (adding an optional block)`,
				`Limit  spec.backup = {"enabled":true,"keep":3,"schedule":"0 3 * * *","zone":"example"} (adding an optional block with zone)`,
			},
		},
		"what is in an optional block is tried, too": {
			schema: `{type: object, properties: {ingress: {type: object, properties: {ui: {type: object, required: [host], properties: {host: {type: string}, annotations: {type: object, additionalProperties: {type: string}}, resources: {type: object, properties: {limits: {type: object, additionalProperties: {type: string}}, requests: {type: object, additionalProperties: {type: string}}}}, a: {type: object, properties: {b: {type: object, properties: {c: {type: object, properties: {d: {type: boolean}}}}}}}}}}}}}`,
			spec:   `{}`,
			want: []string{
				`Valid  spec.ingress = {} (adding an optional block)`,
				`Valid  spec.ingress = {"ui":{"annotations":{"example.com/opdock":"example"},"host":"app.example.com"}} (adding an optional block with ui.annotations: one more entry)`,
				`Valid  spec.ingress = {"ui":{"host":"app.example.com","resources":{"limits":`,
				`Misuse spec.ingress = {"ui":{"host":"app.example.com","resources":{"requests":{"cpu":"-1"}}}} (adding an optional block with ui.resources: negative resources)`,
			},
			not: []string{`"resources":{}`, `"c":{"d"`},
		},
		"a block without a schema changes in what it has": {
			schema: `{type: object, properties: {statefulSet: {type: object, x-kubernetes-preserve-unknown-fields: true}, settings: {x-kubernetes-preserve-unknown-fields: true}}}`,
			spec:   `{statefulSet: {spec: {template: {spec: {tolerations: [{key: gpu, effect: NoSchedule, tolerationSeconds: 3}]}}}}, settings: {level: 3, replicas: 2}}`,
			want: []string{
				`Valid  remove spec.statefulSet (removing an optional block)`,
				`Limit  spec.settings.replicas = 4 (scale up)`, `Limit  spec.settings.level = 4 (one more)`, `Limit  remove spec.statefulSet.spec.template.spec.tolerations (removing an optional block)`,
			},
			not: []string{"Valid  remove spec.statefulSet.spec", "Valid  spec.settings", "Misuse spec.settings"},
		},
		"exactly one of": {
			schema: `{type: object, properties: {source: {type: object, properties: {git: {type: string}, oci: {type: string}}, x-kubernetes-validations: [{rule: "has(self.git) != has(self.oci)"}]}}}`,
			spec:   `{}`,
			want:   []string{`Limit  spec.source = {"git":"example"} (adding an optional block)`},
			not:    []string{`spec.source = {}`, `"git":"example","oci"`},
		},
		"lists": {
			schema: `{type: object, properties: {items: {type: array, minItems: 1, maxItems: 3, items: {type: object, properties: {name: {type: string}}}}}}`,
			spec:   `{items: [{name: a}, {name: b}]}`,
			want: []string{
				`Valid  spec.items = [{"name":"a"},{"name":"b"},{"name":"b-3"}] (one more element)`,
				`Valid  spec.items = [{"name":"a"}] (one element fewer)`, `Valid  spec.items = [{"name":"b"}] (without its first element)`,
				`Limit  spec.items = [{"name":"b"},{"name":"a"}] (in reverse order)`,
				`Misuse spec.items = [{"name":"a"},{"name":"b"},{"name":"b"}] (the same element twice)`,
			},
			not: []string{"= []"},
		},
		"a list with keys has no element twice": {
			schema: `{type: object, properties: {items: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, required: [id], properties: {id: {type: integer}}}}}}`,
			spec:   `{items: [{id: 1}]}`,
			want:   []string{`Valid  spec.items = [{"id":1},{"id":2}] (one more element)`, `Limit  spec.items = [] (an empty list)`},
			not:    []string{"twice"},
		},
		"maps": {
			schema: `{type: object, properties: {options: {type: object, maxProperties: 3, additionalProperties: {type: string}}}}`,
			spec:   `{options: {a: k, b: l}}`,
			want: []string{
				`Valid  remove spec.options (removing an optional block)`, `Valid  spec.options = {"a":"k","b":"l","example-1":"k-2"} (one more entry)`,
				`Valid  spec.options = {"a":"k"} (one entry fewer)`, `Limit  spec.options = {} (an empty map)`,
			},
		},
		"transition rules hold": {
			schema: `{type: object, properties: {size: {type: integer, x-kubernetes-validations: [{rule: "self >= oldSelf"}]}, id: {type: string, x-kubernetes-validations: [{rule: "self == oldSelf"}]}}, x-kubernetes-validations: [{rule: "has(self.id) == has(oldSelf.id)"}]}`,
			spec:   `{size: 3, id: a}`,
			want:   []string{"Valid  spec.size = 5 (scale up)"},
			not:    []string{"spec.size = 2", "spec.size = 1 ", "spec.size = 0", "spec.id"},
		},
		"a volume grows, and must not shrink": {
			schema: `{type: object, properties: {storageSize: {type: string}, cpu: {type: string}}}`,
			spec:   `{storageSize: 4Gi, cpu: 250m}`,
			want: []string{
				`Valid  spec.cpu = "500m" (a quantity that grows)`, `Valid  spec.storageSize = "8Gi" (a quantity that grows)`,
				`Valid  spec.cpu = "125m" (a quantity that shrinks)`, `Misuse spec.storageSize = "2Gi" (a volume that shrinks)`,
			},
		},
		"an image in two parts": {
			schema: `{type: object, properties: {image: {type: object, properties: {repository: {type: string}, tag: {type: string}, pullPolicy: {type: string}}}}}`,
			spec:   `{image: {repository: web, tag: v1.9}}`,
			want: []string{
				`Valid  spec.image.tag = "v1.10" (image change)`, `Valid  spec.image.pullPolicy = "Always" (another policy)`,
				`Misuse spec.image.tag = "no-such-tag" (a tag that does not exist)`,
			},
		},
		"what the operator writes need not exist": {
			schema: `{type: object, properties: {output: {type: object, properties: {secretName: {type: string}}}, input: {type: object, properties: {secretName: {type: string}}}}}`,
			spec:   `{output: {secretName: a}, input: {secretName: b}}`,
			want:   []string{`Valid  spec.output.secretName = "a-2" (another name)`, `Misuse spec.input.secretName = "no-such-secret" (a secret that does not exist)`},
			not:    []string{`spec.output.secretName = "no-such-secret"`},
		},
		"a kind without a spec": {
			schema: `{type: object}`, spec: `{}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.options.Max == 0 {
				test.options.Max = 1000
			}
			expect(t, proposeFor(t, test.schema, test.spec, test.options), test.want, test.not)
		})
	}
}

// expect checks that changes are proposed, and that others are not.
func expect(t *testing.T, changes []Change, want, not []string) {
	t.Helper()
	got := lines(changes)
	for _, one := range want {
		if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, one) }) {
			t.Errorf("missing: %s", one)
		}
	}
	for _, one := range not {
		if at := slices.IndexFunc(got, func(line string) bool { return strings.Contains(line, one) }); at >= 0 {
			t.Errorf("must not be proposed: %s", got[at])
		}
	}
	if t.Failed() {
		t.Logf("proposed:\n%s", strings.Join(got, "\n"))
	}
}

// Properties of a block that is added are tried one at a time, and some of them pause the operator.
func TestPropertiesOfAnAbsentBlock(t *testing.T) {
	const schema = `{type: object, properties: {backup: {type: object, properties: {suspend: {type: boolean}, zone: {type: string}, token: {type: string}}}}}`
	properties := map[string]bool{}
	for _, one := range proposeFor(t, schema, `{}`, Options{}) {
		properties[Path(one.Property)] = true
		if want := strings.HasSuffix(one.Why, "with suspend"); one.Pauses() != want {
			t.Errorf("%s (%s) pauses the operator: %v", Path(one.Property), one.Why, one.Pauses())
		}
	}
	for _, want := range []string{"spec.backup", "spec.backup.suspend", "spec.backup.zone", "spec.backup.token"} {
		if !properties[want] {
			t.Errorf("%s is not among the properties %v", want, slices.Sorted(maps.Keys(properties)))
		}
	}
}

// A robot embeds a whole pod template.
func TestPodTemplate(t *testing.T) {
	all := subjects(t)
	at := slices.IndexFunc(all, func(s subject) bool { return s.object.GetName() == "welder" })
	expect(t, all[at].propose(Options{Max: 2000}), []string{
		"Valid  spec.replicas = 4 (scale up)", "Valid  spec.replicas = 1 (scale down)", `Valid  spec.image = "busybox:1.38" (image change)`,
		`Valid  spec.template.spec.containers[0].image = "busybox:2" (image change)`,
		"Valid  remove spec.template (removing an optional block)", "Valid  remove spec.template.spec.affinity (removing an optional block)",
		`Valid  spec.deploymentName = "welder-workers-2" (another name)`,
		`Valid  spec.template.spec.containers[0].resources.limits.memory = "64Mi" (a quantity that grows)`,
		"Limit  spec.template.spec.initContainers[0].livenessProbe = ",
		`Misuse spec.image = "missing.invalid/no-such-image:0" (an image that cannot be pulled)`,
		"Misuse spec.template.spec.affinity = {", `Misuse spec.template.spec.nodeSelector = {"opdock.dev/no-such-label":"true"} (`,
		`Misuse spec.template.spec.serviceAccountName = "no-such-account" (`, `Misuse spec.template.spec.containers[0].resources = {"limits":{"cpu":"1"},"requests":{"cpu":"2"}} (`,
	}, []string{"Valid  spec.template.spec.hostNetwork", "Valid  spec.template.spec.initContainers[0].livenessProbe"})
}

// Most campaigns end before the last change, so the first ones are of all sorts.
func TestFirstChanges(t *testing.T) {
	got := lines(subjects(t)[0].propose(Options{}))
	for within, want := range map[int][]string{
		7:  {"scale up", "scale down", "image change", "removing an optional block", "Limit  ", "Misuse spec."},
		30: {"(another of its values)", "spec.parameters = {", "(switched on)", "spec.podTemplate.affinity = {", "an empty map", "a secret that does not exist"},
		60: {"spec.podTemplate.tolerations = [", "more than there is"},
	} {
		for _, one := range want {
			if !slices.ContainsFunc(got[:within], func(line string) bool { return strings.Contains(line, one) }) {
				t.Errorf("%q is not among the first %d:\n%s", one, within, strings.Join(got[:within], "\n"))
			}
		}
	}
}

func TestBudgetLeavesNoClassOut(t *testing.T) {
	database := subjects(t)[0]
	for _, most := range []int{10, 40, 100} {
		changes := database.propose(Options{Max: most})
		if len(changes) != most {
			t.Errorf("%d changes are proposed, want %d", len(changes), most)
		}
		count := map[Class]int{}
		properties := map[string]bool{}
		for _, change := range changes {
			count[change.Class]++
			properties[Path(change.Path)] = true
		}
		for _, class := range []Class{Valid, Limit, Misuse} {
			if count[class] == 0 {
				t.Errorf("of %d changes, none is %s", most, class)
			}
		}
		if len(properties) < min(most/2, 20) {
			t.Errorf("%d changes are about %d properties only", most, len(properties))
		}
	}
}

func TestSeed(t *testing.T) {
	database := subjects(t)[0]
	same := func(a, b int64) bool {
		return slices.Equal(lines(database.propose(Options{Seed: a})), lines(database.propose(Options{Seed: b})))
	}
	if !same(0, 0) || !same(7, 7) {
		t.Error("the same seed gives another order")
	}
	if same(7, 8) {
		t.Error("another seed gives the same order")
	}
	if got := lines(database.propose(Options{Seed: 7}))[:2]; !strings.Contains(got[0], "scale up") || !strings.Contains(got[1], "scale down") {
		t.Errorf("a seed must not change what comes first: %v", got)
	}
}

func TestCheck(t *testing.T) {
	database := subjects(t)[0]
	broken := database.object.DeepCopy().Object
	delete(broken["spec"].(map[string]any), "image")
	if err := Check(database.schema(), broken); err == nil || !strings.Contains(err.Error(), "spec.image: Required value") {
		t.Errorf("got %v", err)
	}
	if changes := Propose(database.schema(), broken, Options{}); changes != nil {
		t.Errorf("changes are proposed for an object that is invalid: %v", changes)
	}
	notStructural := &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {}}}
	if err := Check(notStructural, map[string]any{"spec": "a"}); err != nil && !strings.Contains(err.Error(), "structural") {
		t.Errorf("got %v", err)
	}
}

func TestSample(t *testing.T) {
	database := subjects(t)[0]
	sample, err := Sample(database.schema(), "data.example.com/v1", "Database", "first")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "data.example.com/v1", "kind": "Database", "metadata": map[string]any{"name": "first"},
		"spec": map[string]any{"image": "busybox:1.36", "storage": map[string]any{"size": "1Gi"}},
	}
	if !reflect.DeepEqual(sample, want) {
		t.Errorf("got  %v\nwant %v", sample, want)
	}
	for _, s := range subjects(t) {
		sample, err := Sample(s.schema(), s.object.GetAPIVersion(), s.object.GetKind(), "a")
		if s.object.GetKind() == "KAPP" {
			// A rule limits what may be embedded, and no schema can tell.
			if err == nil || !strings.Contains(err.Error(), "write a sample by hand") {
				t.Errorf("%s: got %v", s.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
		} else if changes := Propose(s.schema(), sample, Options{Max: 20}); len(changes) < 5 {
			t.Errorf("%s: only %d changes to %v", s.name, len(changes), sample)
		}
	}
	impossible := database.schema().DeepCopy()
	impossible.XValidations = apiextensionsv1.ValidationRules{{Rule: "self.metadata.name.startsWith('db-')", Message: "needs a prefix"}}
	if _, err := Sample(impossible, "data.example.com/v1", "Database", "first"); err == nil || !strings.Contains(err.Error(), "needs a prefix") {
		t.Errorf("got %v", err)
	}
}
