// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package crddiff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

type crd = apiextensionsv1.CustomResourceDefinition

// parse reads a CRD.
func parse(t testing.TB, text string) *crd {
	t.Helper()
	definition := &crd{}
	if err := yaml.UnmarshalStrict([]byte(text), definition); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return definition
}

// withSpec returns a CRD with one version, given the schema of its spec.
func withSpec(t testing.TB, schema string) *crd {
	t.Helper()
	return parse(t, `{metadata: {name: ships.sea.example.com}, spec: {group: sea.example.com, scope: Namespaced, names: {kind: Ship, plural: ships}, versions: [
		{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: `+schema+`}}}}]}}`)
}

// short returns differences as "severity version path reason".
func short(differences []Difference) []string {
	var list []string
	for _, one := range differences {
		list = append(list, strings.Join(strings.Fields(fmt.Sprintln(one.Severity, one.Version, one.Path, one.Reason)), " "))
	}
	return list
}

func TestCompareSchemas(t *testing.T) {
	for name, test := range map[string]struct {
		old, updated string // schemas of the spec
		want         []string
		says         string // part of the first message
	}{
		"nothing": {`{type: object, properties: {a: {type: string}}}`, `{type: object, description: new, properties: {a: {type: string, description: b}}}`, nil, ""},
		"property removed": {
			`{type: object, properties: {a: {type: string}, b: {type: string}}}`, `{type: object, properties: {a: {type: string}}}`,
			[]string{"breaking v1 spec.b PropertyRemoved"}, "Existing values are dropped from all objects",
		},
		"property removed where unknown fields are preserved": {
			`{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {b: {type: string}}}`, `{type: object, x-kubernetes-preserve-unknown-fields: true}`,
			[]string{"risky v1 spec.b PropertyRemoved"}, "Existing values are kept",
		},
		"property added": {
			`{type: object}`, `{type: object, properties: {a: {type: string}}}`,
			[]string{"compatible v1 spec.a PropertyAdded"}, "new and optional",
		},
		"property added that is required": {
			`{type: object}`, `{type: object, required: [a], properties: {a: {type: string}}}`,
			[]string{"breaking v1 spec.a PropertyRequired"}, "No existing object has it",
		},
		"property added that has a default": {
			`{type: object}`, `{type: object, required: [a], properties: {a: {type: string, default: x}}}`,
			[]string{"risky v1 spec.a DefaultAdded"}, `the default "x"`,
		},
		"property added where anything was": {
			`{type: object, x-kubernetes-preserve-unknown-fields: true}`, `{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}`,
			[]string{"risky v1 spec.a PropertyAdded"}, "no longer validate",
		},
		"newly required": {
			`{type: object, properties: {a: {type: string}}}`, `{type: object, required: [a], properties: {a: {type: string}}}`,
			[]string{"breaking v1 spec.a PropertyRequired"}, "Objects without it no longer validate",
		},
		"newly required with a default": {
			`{type: object, properties: {a: {type: string, default: x}}}`, `{type: object, required: [a], properties: {a: {type: string, default: x}}}`,
			[]string{"risky v1 spec.a PropertyRequired"}, "get the default",
		},
		"no longer required": {
			`{type: object, required: [a], properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string}}}`,
			[]string{"compatible v1 spec.a PropertyOptional"}, "",
		},
		"type changed": {
			`{type: object, properties: {a: {type: string, maxLength: 3}}}`, `{type: object, properties: {a: {type: array, items: {type: string}}}}`,
			[]string{"breaking v1 spec.a TypeChanged"}, "from string to array",
		},
		"type widened": {
			`{type: object, properties: {a: {type: integer}, b: {type: integer}}}`, `{type: object, properties: {a: {type: number}, b: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}}}`,
			[]string{"compatible v1 spec.a TypeWidened", "compatible v1 spec.b TypeWidened"}, "",
		},
		"type narrowed": {
			`{type: object, properties: {b: {x-kubernetes-int-or-string: true}}}`, `{type: object, properties: {b: {type: integer}}}`,
			[]string{"breaking v1 spec.b TypeChanged"}, "from int-or-string to integer",
		},
		"enum value removed and added": {
			`{type: object, properties: {a: {type: string, enum: [x, v]}}}`, `{type: object, properties: {a: {type: string, enum: [v, z]}}}`,
			[]string{"breaking v1 spec.a Narrowed", "compatible v1 spec.a Widened"}, `"x" can no longer be used`,
		},
		"enum added": {
			`{type: object, properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string, enum: [v, z]}}}`,
			[]string{"breaking v1 spec.a Narrowed"}, `one of "v", "z"`,
		},
		"enum removed": {
			`{type: object, properties: {a: {type: string, enum: [x]}}}`, `{type: object, properties: {a: {type: string}}}`,
			[]string{"compatible v1 spec.a Widened"}, "",
		},
		"maximum lowered": {
			`{type: object, properties: {a: {type: integer, maximum: 10}}}`, `{type: object, properties: {a: {type: integer, maximum: 9}}}`,
			[]string{"breaking v1 spec.a Narrowed"}, "maximum is lowered from 10 to 9",
		},
		"maximum raised": {
			`{type: object, properties: {a: {type: integer, maximum: 10}}}`, `{type: object, properties: {a: {type: integer, maximum: 11}}}`,
			[]string{"compatible v1 spec.a Widened"}, "",
		},
		"maximum excluded": {
			`{type: object, properties: {a: {type: integer, maximum: 10}}}`, `{type: object, properties: {a: {type: integer, maximum: 10, exclusiveMaximum: true}}}`,
			[]string{"breaking v1 spec.a Narrowed"}, "The maximum itself",
		},
		"minimum raised": {
			`{type: object, properties: {a: {type: integer, minimum: 0}}}`, `{type: object, properties: {a: {type: integer, minimum: 1}}}`,
			[]string{"breaking v1 spec.a Narrowed"}, "minimum is raised from 0 to 1",
		},
		"minimum added": {
			`{type: object, properties: {a: {type: integer}}}`, `{type: object, properties: {a: {type: integer, minimum: 0}}}`,
			[]string{"breaking v1 spec.a Narrowed"}, "minimum is now 0",
		},
		"multipleOf added": {
			`{type: object, properties: {a: {type: integer}}}`, `{type: object, properties: {a: {type: integer, multipleOf: 2}}}`,
			[]string{"breaking v1 spec.a Narrowed"}, "a multiple of 2",
		},
		"lengths": {
			`{type: object, properties: {a: {type: string, maxLength: 9, minLength: 2}}}`, `{type: object, properties: {a: {type: string, maxLength: 8, minLength: 1}}}`,
			[]string{"breaking v1 spec.a Narrowed", "compatible v1 spec.a Widened"}, "maxLength is lowered from 9 to 8",
		},
		"items": {
			`{type: object, properties: {a: {type: array, items: {type: string}}}}`, `{type: object, properties: {a: {type: array, maxItems: 3, minItems: 1, items: {type: string, maxLength: 2}}}}`,
			[]string{"breaking v1 spec.a Narrowed", "breaking v1 spec.a Narrowed", "breaking v1 spec.a[*] Narrowed"}, "maxItems is now 3",
		},
		"pattern": {
			`{type: object, properties: {a: {type: string}, b: {type: string, pattern: ^a}, c: {type: string, pattern: ^a}}}`,
			`{type: object, properties: {a: {type: string, pattern: ^a}, b: {type: string, pattern: ^b}, c: {type: string}}}`,
			[]string{"breaking v1 spec.a Narrowed", "risky v1 spec.b PatternChanged", "compatible v1 spec.c Widened"}, `must now match "^a"`,
		},
		"format": {
			`{type: object, properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string, format: date-time}}}`,
			[]string{"risky v1 spec.a FormatChanged"}, "from none to date-time",
		},
		"rules": {
			`{type: object, properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: self.a > 0}]}`,
			`{type: object, properties: {a: {type: integer, x-kubernetes-validations: [{rule: self == oldSelf}]}}, x-kubernetes-validations: [{rule: self.a > 1, message: more}]}`,
			[]string{"breaking v1 spec RuleAdded", "risky v1 spec.a RuleAdded", "compatible v1 spec RuleRemoved"}, `"self.a > 1" (more)`,
		},
		"another message of a rule": {
			`{type: object, x-kubernetes-validations: [{rule: "true", message: a}]}`, `{type: object, x-kubernetes-validations: [{rule: "true", message: b}]}`, nil, "",
		},
		"one of several": {
			`{type: object, properties: {a: {type: integer}}}`, `{type: object, properties: {a: {type: integer}}, oneOf: [{required: [a]}]}`,
			[]string{"risky v1 spec ValidationChanged"}, "oneOf changes",
		},
		"map closed": {
			`{type: object, properties: {a: {type: object, additionalProperties: {type: string}}}}`, `{type: object, properties: {a: {type: object, properties: {b: {type: string}}}}}`,
			[]string{"breaking v1 spec.a MapClosed", "risky v1 spec.a.b PropertyAdded"}, "Entries of existing objects",
		},
		"map opened": {
			`{type: object, properties: {a: {type: object}}}`, `{type: object, properties: {a: {type: object, additionalProperties: {type: string}}}}`,
			[]string{"compatible v1 spec.a MapOpened"}, "",
		},
		"entries of a map": {
			`{type: object, properties: {a: {type: object, additionalProperties: {type: string}}}}`, `{type: object, properties: {a: {type: object, additionalProperties: {type: integer}}}}`,
			[]string{"breaking v1 spec.a[*] TypeChanged"}, "",
		},
		"defaults": {
			`{type: object, properties: {a: {type: string}, b: {type: string, default: x}, c: {type: string, default: x}, d: {type: object, default: {a: 1, b: 2}}}}`,
			`{type: object, properties: {a: {type: string, default: x}, b: {type: string, default: v}, c: {type: string}, d: {type: object, default: {b: 2, a: 1}}}}`,
			[]string{"risky v1 spec.a DefaultAdded", "risky v1 spec.b DefaultChanged", "risky v1 spec.c DefaultRemoved"}, "get it at the next read",
		},
		"list types": {
			`{type: object, properties: {a: {type: array, items: {type: string}}, b: {type: array, x-kubernetes-list-type: set, items: {type: string}}}}`,
			`{type: object, properties: {a: {type: array, x-kubernetes-list-type: set, items: {type: string}}, b: {type: array, x-kubernetes-list-type: atomic, items: {type: string}}}}`,
			[]string{"breaking v1 spec.a ListTypeChanged", "risky v1 spec.b ListTypeChanged"}, "from atomic to set",
		},
		"list keys": {
			`{type: object, properties: {a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [x], items: {type: object, required: [x, v], properties: {x: {type: string}, v: {type: string}}}}}}`,
			`{type: object, properties: {a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [x, v], items: {type: object, required: [x, v], properties: {x: {type: string}, v: {type: string}}}}}}`,
			[]string{"breaking v1 spec.a ListKeysChanged"}, `from "x" to "x", "v"`,
		},
		"map types": {
			`{type: object, properties: {a: {type: object}}}`, `{type: object, properties: {a: {type: object, x-kubernetes-map-type: atomic}}}`,
			[]string{"risky v1 spec.a MapTypeChanged"}, "from granular to atomic",
		},
		"unknown fields": {
			`{type: object, properties: {a: {type: object, x-kubernetes-preserve-unknown-fields: true}, b: {type: object}}}`,
			`{type: object, properties: {a: {type: object}, b: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`,
			[]string{"breaking v1 spec.a UnknownFieldsPruned", "compatible v1 spec.b UnknownFieldsPreserved"}, "are dropped",
		},
		"nullable": {
			`{type: object, properties: {a: {type: string, nullable: true}}}`, `{type: object, properties: {a: {type: string}}}`,
			[]string{"risky v1 spec.a NullableRemoved"}, "Null is no longer a value",
		},
		"embedded": {
			`{type: object, properties: {a: {type: object}}}`, `{type: object, properties: {a: {type: object, x-kubernetes-embedded-resource: true}}}`,
			[]string{"risky v1 spec.a EmbeddedResourceChanged"}, "is now an embedded object",
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := Compare([]*crd{withSpec(t, test.old)}, []*crd{withSpec(t, test.updated)})
			if got := short(found); !slices.Equal(got, test.want) {
				t.Fatalf("got  %q\nwant %q", got, test.want)
			}
			if len(found) > 0 && !strings.Contains(found[0].Message, test.says) {
				t.Errorf("the message %q does not say %q", found[0].Message, test.says)
			}
		})
	}
}

func TestCompareDefinitions(t *testing.T) {
	const base = `{metadata: {name: ships.sea.example.com}, spec: {group: sea.example.com, scope: Namespaced,
  names: {kind: Ship, listKind: ShipList, plural: ships, singular: ship, shortNames: [sh], categories: [sea]},
  versions: [
    {name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {old: {type: string}}}}}}},
    {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {renamed: {type: string}}}, status: {type: object, properties: {a: {type: string}}}}}},
      additionalPrinterColumns: [{name: a, type: string, jsonPath: .spec.a}], selectableFields: [{jsonPath: .spec.renamed}],
      subresources: {status: {}, scale: {specReplicasPath: .spec.a, statusReplicasPath: .status.a}}}]},
  status: {storedVersions: [v1alpha1]}}`
	for name, test := range map[string]struct {
		change func(*crd)
		want   []string
		says   string
	}{
		"nothing": {func(*crd) {}, nil, ""},
		"defaults of names": {func(c *crd) {
			c.Spec.Names.ListKind, c.Spec.Names.Singular = "", ""
		}, nil, ""},
		"scope": {func(c *crd) { c.Spec.Scope = "Cluster" }, []string{"breaking ScopeChanged"}, "must be deleted and recreated"},
		"kind":  {func(c *crd) { c.Spec.Names.Kind = "Boat" }, []string{"breaking KindChanged"}, "from Ship to Boat"},
		"names": {func(c *crd) {
			c.Spec.Names.ShortNames, c.Spec.Names.Categories, c.Spec.Names.Singular = []string{"sp"}, nil, "vessel"
		}, []string{"risky NamesChanged", "risky NamesChanged", "risky NamesChanged", "compatible NamesChanged"}, "singular"},
		"stored version removed": {func(c *crd) {
			c.Spec.Versions = c.Spec.Versions[1:]
			c.Spec.Versions[0].Storage = true
		}, []string{
			"breaking v1alpha1 VersionRemoved", "breaking v1alpha1 -> v1 spec.old PropertyRemoved", "risky StorageVersionChanged",
			"compatible v1alpha1 -> v1 spec.renamed PropertyAdded", "compatible v1alpha1 -> v1 status PropertyAdded",
		}, "status.storedVersions"},
		"version removed": {func(c *crd) { c.Spec.Versions = c.Spec.Versions[:1] }, []string{"breaking v1 VersionRemoved"}, "that use it fail"},
		"version added": {func(c *crd) {
			c.Spec.Versions = append(c.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2", Served: true})
		}, []string{"compatible v2 VersionAdded"}, ""},
		"not served":   {func(c *crd) { c.Spec.Versions[1].Served = false }, []string{"breaking v1 VersionNotServed"}, ""},
		"deprecated":   {func(c *crd) { c.Spec.Versions[1].Deprecated = true }, []string{"compatible v1 VersionDeprecated"}, ""},
		"columns":      {func(c *crd) { c.Spec.Versions[1].AdditionalPrinterColumns = nil }, []string{"compatible v1 PrinterColumnsChanged"}, ""},
		"selectable":   {func(c *crd) { c.Spec.Versions[1].SelectableFields = nil }, []string{"breaking v1 SelectableFieldRemoved"}, ".spec.renamed"},
		"subresources": {func(c *crd) { c.Spec.Versions[1].Subresources = nil }, []string{"breaking v1 SubresourceRemoved", "breaking v1 SubresourceRemoved"}, ""},
		"scale path":   {func(c *crd) { c.Spec.Versions[1].Subresources.Scale.SpecReplicasPath = ".spec.b" }, []string{"risky v1 SubresourceChanged"}, ""},
		"status added": {func(c *crd) {
			c.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
		}, []string{"risky v1alpha1 SubresourceAdded"}, "gets no error"},
		"storage version with a webhook": {func(c *crd) {
			c.Spec.Versions[0].Storage, c.Spec.Versions[1].Storage = false, true
			c.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: "Webhook"}
		}, []string{"risky ConversionChanged", "risky StorageVersionChanged"}, "does not answer"},
		"status property removed": {func(c *crd) {
			c.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties["status"] = apiextensionsv1.JSONSchemaProps{Type: "object"}
		}, []string{"risky v1 status.a PropertyRemoved"}, "The operator writes the status"},
		"removed": {nil, []string{"breaking CRDRemoved"}, "all of its objects are deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			old := parse(t, base)
			var updated []*crd
			if test.change != nil {
				one := parse(t, base)
				one.Status = apiextensionsv1.CustomResourceDefinitionStatus{} // as in a manifest
				test.change(one)
				updated = append(updated, one)
			}
			found := Compare([]*crd{old}, updated)
			if got := short(found); !slices.Equal(got, test.want) {
				t.Fatalf("got  %q\nwant %q", got, test.want)
			}
			if len(found) > 0 && !strings.Contains(found[0].Message, test.says) {
				t.Errorf("the message %q does not say %q", found[0].Message, test.says)
			}
		})
	}
	if got := short(Compare(nil, []*crd{parse(t, base)})); !slices.Equal(got, []string{"compatible CRDAdded"}) {
		t.Errorf("got %q", got)
	}
}

func TestCompareConversions(t *testing.T) {
	conversion := func(text string) *crd {
		definition := withSpec(t, "{type: object}")
		if err := yaml.UnmarshalStrict([]byte(text), &definition.Spec.Conversion); err != nil {
			t.Fatal(err)
		}
		return definition
	}
	none := conversion("{strategy: None}")
	here := conversion("{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: a, name: b}}}}")
	there := conversion("{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: a, name: c, path: /convert}}}}")
	for _, test := range []struct {
		old, updated *crd
		want         []string
		says         string
	}{
		{none, withSpec(t, "{type: object}"), nil, ""},
		{none, here, []string{"risky ConversionChanged"}, "from None to Webhook"},
		{here, none, []string{"breaking ConversionChanged"}, "lose the fields"},
		{here, here, nil, ""},
		{here, there, []string{"risky ConversionChanged"}, "from Service a/b:443/ to Service a/c:443/convert"},
	} {
		found := Compare([]*crd{test.old}, []*crd{test.updated})
		if got := short(found); !slices.Equal(got, test.want) {
			t.Errorf("got  %q\nwant %q", got, test.want)
		} else if len(found) > 0 && !strings.Contains(found[0].Message, test.says) {
			t.Errorf("the message %q does not say %q", found[0].Message, test.says)
		}
	}
}
