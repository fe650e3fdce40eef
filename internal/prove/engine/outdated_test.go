// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/world"
)

func TestPodsThatKeepWhatTheyRead(t *testing.T) {
	const byVariable = `{containers: [{name: web, env: [{name: PORT, valueFrom: {configMapKeyRef: {name: web, key: port}}}]}]}`
	for name, test := range map[string]struct {
		spec   string   // of the pod
		change string   // what is in the ConfigMap after the change, instead of {port: "80", host: a}
		pod    string   // what else is in the pod afterwards
		set    string   // the StatefulSet of the pod
		want   []string // fields
		others bool     // whether the ConfigMap is written by another client than the operator
	}{
		"variable":                   {spec: byVariable, change: `{port: "81", host: a}`, want: []string{"data.port"}},
		"another key":                {spec: byVariable, change: `{port: "80", host: b}`},
		"key that is gone":           {spec: byVariable, change: `{host: a}`, want: []string{"data.port"}},
		"all variables":              {spec: `{containers: [{name: web, envFrom: [{configMapRef: {name: web}}]}]}`, change: `{port: "80", host: b}`, want: []string{"data.host"}},
		"other ConfigMap":            {spec: `{containers: [{name: web, envFrom: [{configMapRef: {name: db}}]}]}`, change: `{port: "80", host: b}`},
		"of a user":                  {spec: byVariable, change: `{port: "81", host: a}`, others: true},
		"file with a subPath":        {spec: `{containers: [{name: web, volumeMounts: [{name: v, mountPath: /etc/port, subPath: port}]}], volumes: [{name: v, configMap: {name: web}}]}`, change: `{port: "81", host: a}`, want: []string{"data.port"}},
		"file of another name":       {spec: `{containers: [{name: web, volumeMounts: [{name: v, mountPath: /etc/port, subPath: p}]}], volumes: [{name: v, projected: {sources: [{configMap: {name: web, items: [{key: port, path: p}]}}]}}]}`, change: `{port: "81", host: a}`, want: []string{"data.port"}},
		"another file":               {spec: `{containers: [{name: web, volumeMounts: [{name: v, mountPath: /etc/port, subPath: host}]}], volumes: [{name: v, configMap: {name: web}}]}`, change: `{port: "81", host: a}`},
		"directory":                  {spec: `{containers: [{name: web, volumeMounts: [{name: v, mountPath: /etc}]}], volumes: [{name: v, configMap: {name: web}}]}`, change: `{port: "81", host: a}`},
		"init container":             {spec: `{initContainers: [{name: init, envFrom: [{configMapRef: {name: web}}]}], containers: [{name: web}]}`, change: `{port: "81", host: a}`},
		"sidecar":                    {spec: `{initContainers: [{name: init, restartPolicy: Always, envFrom: [{configMapRef: {name: web}}]}], containers: [{name: web}]}`, change: `{port: "81", host: a}`, want: []string{"data.port"}},
		"new pod":                    {spec: byVariable, change: `{port: "81", host: a}`, pod: `{metadata: {uid: new}}`},
		"pod that is being deleted":  {spec: byVariable, change: `{port: "81", host: a}`, pod: `{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}}`},
		"pod that is done":           {spec: byVariable, change: `{port: "81", host: a}`, pod: `{status: {phase: Succeeded}}`},
		"pod of a Job":               {spec: byVariable, change: `{port: "81", host: a}`, pod: `{metadata: {ownerReferences: [{kind: Job, name: web}]}}`},
		"pod that a user replaces":   {spec: byVariable, change: `{port: "81", host: a}`, pod: `{metadata: {ownerReferences: [{kind: StatefulSet, name: set}]}}`, set: `{updateStrategy: {type: OnDelete}}`},
		"pod that the set replaces":  {spec: byVariable, change: `{port: "81", host: a}`, pod: `{metadata: {ownerReferences: [{kind: StatefulSet, name: set}]}}`, set: `{}`, want: []string{"data.port"}},
		"nothing that has a subPath": {spec: `{containers: [{name: web, volumeMounts: [{name: v, mountPath: /etc/port, subPath: port}]}], volumes: [{name: v, emptyDir: {}}]}`, change: `{port: "81", host: a}`},
	} {
		t.Run(name, func(t *testing.T) {
			state := func(data, pod string) world.State {
				objects := world.State{}
				for _, one := range []struct{ group, kind, name, text string }{
					{"", "ConfigMap", "web", "apiVersion: v1\ndata: " + data},
					{"", "Pod", "web", "apiVersion: v1\nspec: " + test.spec + "\nstatus: {phase: Running}"},
					{"apps", "StatefulSet", "set", "apiVersion: apps/v1\nspec: " + test.set},
				} {
					object := &unstructured.Unstructured{}
					if err := yaml.Unmarshal([]byte(one.text), &object.Object); err != nil {
						t.Fatal(err)
					}
					object.SetKind(one.kind)
					object.SetNamespace("default")
					object.SetName(one.name)
					object.SetUID("old")
					if one.kind == "Pod" && pod != "" {
						var more map[string]any
						if err := yaml.Unmarshal([]byte(pod), &more); err != nil {
							t.Fatal(err)
						}
						merge(object.Object, more)
					}
					objects[world.Key{Group: one.group, Kind: one.kind, Namespace: "default", Name: one.name}] = object
				}
				return objects
			}
			written := write{Moment: Moment{Verb: "update", Resource: "configmaps", Namespace: "default", Name: "web"}, object: "ConfigMap"}
			c := &campaign{mask: compare.NewMask(), reference: []*stage{{writes: []write{written}}}}
			if test.others {
				c.reference[0].writes = nil
			}
			wrong := c.outdated(0, state(`{port: "80", host: a}`, ""), &made{state: state(test.change, test.pod)})
			if len(test.want) == 0 {
				if len(wrong) > 0 {
					t.Errorf("found %+v", wrong[0])
				}
				return
			}
			if len(wrong) != 1 || wrong[0].Object != "ConfigMap default/web" || !slices.Equal(wrong[0].Fields, test.want) {
				t.Errorf("found %+v, want %v", wrong, test.want)
			}
		})
	}
}

// merge sets fields of an object.
func merge(into, more map[string]any) {
	for name, value := range more {
		fields, isObject := value.(map[string]any)
		old, isOld := into[name].(map[string]any)
		if isObject && isOld {
			merge(old, fields)
			continue
		}
		into[name] = value
	}
}
