// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/opdock/opdock/internal/prove/world"
)

const managed = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: victory
  labels: {app: victory}
  managedFields:
  - {manager: frigate-controller, operation: Apply, fieldsType: FieldsV1, fieldsV1: %s}
  - {manager: kube-controller-manager, operation: Update, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:minReadySeconds": {}}}}
  - {manager: frigate-controller, operation: Update, subresource: status, fieldsType: FieldsV1, fieldsV1: {"f:status": {"f:replicas": {}}}}
  - {manager: opdock-prove, operation: Update, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:progressDeadlineSeconds": {}}}}
spec:
  replicas: 2
  paused: true
  minReadySeconds: 5
  progressDeadlineSeconds: 6
  type: Fast
  affinity: ClientIP
  selector: {matchLabels: {app: victory}}
  template:
    spec:
      containers:
      - {name: side, image: "side:1"}
      - {name: main, image: "nginx:1.29", ports: [{containerPort: 80, protocol: TCP, hostPort: 8080}]}
status: {replicas: 2}
`

func TestEditsChangeWhatTheOperatorHasSet(t *testing.T) {
	for name, test := range map[string]struct {
		fields string
		want   []string
	}{
		"a number":                     {`{"f:spec": {"f:replicas": {}}}`, []string{"spec.replicas=3"}},
		"a switch":                     {`{"f:spec": {"f:paused": {}}}`, []string{"spec.paused=false"}},
		"a text in a list":             {`{"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {"f:image": {}, "f:name": {}}}}}}}`, []string{"spec.template.spec.containers.1.image=nginx:1.29x"}},
		"a key of two fields":          {`{"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {"f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {"f:hostPort": {}, "f:containerPort": {}}}}}}}}}`, []string{"spec.template.spec.containers.1.ports.0.hostPort=8081"}},
		"nothing of the system":        {`{"f:metadata": {"f:labels": {"f:app": {}}}, "f:status": {"f:replicas": {}}}`, nil},
		"no selector":                  {`{"f:spec": {"f:selector": {"f:matchLabels": {"f:app": {}}}}}`, nil},
		"nothing of which few fit":     {`{"f:spec": {"f:type": {}}}`, nil},
		"nothing like an enumeration":  {`{"f:spec": {"f:affinity": {}}}`, nil},
		"nothing that is not there":    {`{"f:spec": {"f:serviceName": {}}}`, nil},
		"no element that is not there": {`{"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"gone\"}": {"f:image": {}}}}}}}`, nil},
		"what does most, and those at the top": {
			`{"f:spec": {"f:replicas": {}, "f:paused": {}, "f:minReadySeconds": {}, "f:progressDeadlineSeconds": {}, "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {"f:image": {}}}}}}}`,
			[]string{"spec.template.spec.containers.1.image=nginx:1.29x", "spec.replicas=3", "spec.minReadySeconds=6", "spec.paused=false"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, one := range mostTelling(edits(read(t, fmt.Sprintf(managed, test.fields)), nil)) {
				got = append(got, fmt.Sprintf("%s=%v", strings.Join(one.path, "."), one.value))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestEditsOfAnObjectWithoutManagedFields(t *testing.T) {
	if found := edits(read(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}"), nil); len(found) > 0 {
		t.Errorf("got %v, although nothing says who has set what", found)
	}
}

func TestFollow(t *testing.T) {
	object := read(t, fmt.Sprintf(managed, "{}")).Object
	for name, test := range map[string]struct {
		path fieldpath.Path
		want string
	}{
		"a field":                {fieldpath.MakePathOrDie("spec", "replicas"), "spec.replicas=2"},
		"an element":             {fieldpath.MakePathOrDie("spec", "template", "spec", "containers", fieldpath.KeyByFields("name", "side"), "image"), "spec.template.spec.containers.0.image=side:1"},
		"no such element":        {fieldpath.MakePathOrDie("spec", "template", "spec", "containers", fieldpath.KeyByFields("name", "x")), "=<nil>"},
		"an element by position": {fieldpath.MakePathOrDie("spec", "template", "spec", "containers", 0), "=<nil>"},
		"a key of a map":         {fieldpath.MakePathOrDie("spec", fieldpath.KeyByFields("name", "x")), "=<nil>"},
		"beyond a leaf":          {fieldpath.MakePathOrDie("spec", "replicas", "x"), "=<nil>"},
	} {
		names, value := follow(object, test.path)
		if got := fmt.Sprintf("%s=%v", strings.Join(names, "."), value); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

// having is a campaign whose operator has made one object, which it has sent so.
func having(t *testing.T, verb, live, sent string) (*campaign, child) {
	t.Helper()
	c, object := sailing(), read(t, live)
	key := world.Key{Group: object.GroupVersionKind().Group, Resource: strings.ToLower(object.GetKind()) + "s", Kind: object.GetKind(), Namespace: "default", Name: object.GetName()}
	w := write{Moment: Moment{Verb: verb, Group: key.Group, Resource: key.Resource, Namespace: key.Namespace, Name: key.Name, Nth: 1}}
	if sent != "" {
		w.sent = read(t, sent).Object
	}
	for _, s := range c.reference[:2] {
		s.writes, s.state = nil, world.State{key: object}
	}
	c.reference[0].writes = []write{w}
	return c, child{key: key, object: object}
}

func changes(of []edit) (texts []string) {
	for _, one := range of {
		texts = append(texts, fmt.Sprintf("%s=%v", strings.Join(one.path, "."), one.value))
	}
	return texts
}

// createdDeployment was created without server-side apply: its managed fields hold the defaults of the API server as well.
const createdDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: victory
  managedFields:
  - manager: manager
    operation: Update
    fieldsType: FieldsV1
    fieldsV1:
      f:spec:
        {f:progressDeadlineSeconds: {}, f:replicas: {}, f:revisionHistoryLimit: {}, f:template: {f:spec: {f:terminationGracePeriodSeconds: {}, f:containers: {'k:{"name":"main"}': {
          f:image: {}, f:terminationMessagePath: {}, f:env: {'k:{"name":"GUNS"}': {f:value: {}}}, f:resources: {f:limits: {f:cpu: {}}, f:requests: {f:memory: {}}},
          f:ports: {'k:{"containerPort":80,"protocol":"TCP"}': {f:hostPort: {}}}}}}}}
spec:
  progressDeadlineSeconds: 600
  replicas: 2
  revisionHistoryLimit: 10
  template:
    spec:
      terminationGracePeriodSeconds: 30
      containers:
      - {name: main, image: "nginx:1.29", terminationMessagePath: /dev/termination-log, env: [{name: GUNS, value: "104"}], resources: {limits: {cpu: 500m}, requests: {memory: 1Gi}}, ports: [{containerPort: 80, protocol: TCP, hostPort: 8080}]}
`

const sentDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: victory, creationTimestamp: null}
spec:
  replicas: 2
  template: {spec: {containers: [{name: main, image: "nginx:1.29", env: [{name: GUNS, value: "104"}], resources: {limits: {cpu: 500m}, requests: {memory: 1Gi}}, ports: [{containerPort: 80, hostPort: 8080}]}]}}
`

// TestDefaultsAreNotEdited is about fields that no operator has to restore, because it has never set them.
func TestDefaultsAreNotEdited(t *testing.T) {
	const main = "spec.template.spec.containers.0."
	c, object := having(t, "create", createdDeployment, sentDeployment)
	expectLines(t, changes(edits(object.object, c.sentFor(object))), "spec.replicas=3", main+"image=nginx:1.29x", main+"env.0.value=104x", main+"ports.0.hostPort=8081",
		main+"resources.limits.cpu=1", main+"resources.requests.memory=512Mi")
	expectLines(t, changes(c.edits(object)), main+"image=nginx:1.29x", main+"env.0.value=104x", "spec.replicas=3", main+"ports.0.hostPort=8081")
	// It is not known what an object was made with that somebody else made, but who has changed what.
	for about, verb := range map[string]string{"an object that was only patched": "patch", "one that was only updated": "update"} {
		c, object := having(t, verb, createdDeployment, sentDeployment)
		if sent := c.sentFor(object); sent != nil {
			t.Errorf("%s was made with %v", about, sent)
		}
	}
}

// TestReplicasOfAutoscalersAreNotEdited is about a field that the operator sets once and then leaves to an autoscaler.
func TestReplicasOfAutoscalersAreNotEdited(t *testing.T) {
	for target, edited := range map[string]bool{"victory": false, "surprise": true} {
		c, object := having(t, "create", createdDeployment, sentDeployment)
		scaler := read(t, `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: victory}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: `+target+`}}}`)
		c.reference[1].state[world.Key{Group: "autoscaling", Resource: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Namespace: "default", Name: "victory"}] = scaler
		if found := changes(c.edits(object)); slices.Contains(found, "spec.replicas=3") != edited || len(found) != mostEdits {
			t.Errorf("with an autoscaler of %s: got %q", target, found)
		}
	}
}

// TestEmptyFieldsAreDefaults is about types of Go, which always send some fields.
func TestEmptyFieldsAreDefaults(t *testing.T) {
	service := func(rest string) string {
		return `{apiVersion: v1, kind: Service, metadata: {name: victory, managedFields: [{manager: manager, operation: Update, fieldsType: FieldsV1, fieldsV1: {f:spec: {f:ports: {'k:{"port":80,"protocol":"TCP"}': {f:port: {}, f:targetPort: {}}}}}}]}, spec: {ports: [` + rest + `]}}`
	}
	live := read(t, service("{port: 80, protocol: TCP, targetPort: 80}"))
	expectLines(t, changes(edits(live, []map[string]any{read(t, service("{port: 80, targetPort: 0}")).Object})), "spec.ports.0.port=81")
	expectLines(t, changes(edits(live, []map[string]any{read(t, service("{port: 80, targetPort: 80}")).Object})), "spec.ports.0.port=81", "spec.ports.0.targetPort=81")
}

// TestEditsOfSecrets are accepted, and say nothing about what was in them.
func TestEditsOfSecrets(t *testing.T) {
	live := `{apiVersion: v1, kind: Secret, metadata: {name: crew, managedFields: [{manager: manager, operation: Update, fieldsType: FieldsV1, fieldsV1: {f:data: {f:captain: {}, f:mate: {}}, f:type: {}}}]}, data: {captain: bmVsc29u, mate: aGFyZHk=}, type: Opaque}`
	for about, sent := range map[string]string{
		"data":       `{apiVersion: v1, kind: Secret, metadata: {name: crew}, data: {captain: bmVsc29u, mate: aGFyZHk=}}`,
		"stringData": `{apiVersion: v1, kind: Secret, metadata: {name: crew}, stringData: {captain: nelson, mate: hardy}}`,
	} {
		c, _ := having(t, "create", live, sent)
		var paths []string
		for _, p := range driftPlans(c) {
			if p.Variant != "edit" {
				continue
			}
			paths = append(paths, strings.Join(p.Path, "."))
			text, _ := p.Value.(string)
			decoded, err := base64.StdEncoding.DecodeString(text)
			if err != nil || strings.Contains(string(decoded), "nelson") || strings.Contains(p.Says, text) {
				t.Errorf("%s: %q is changed to %q, and it is said: %s", about, p.Path, text, p.Says)
			}
		}
		expectLines(t, paths, "data.captain", "data.mate")
	}
	c, object := having(t, "create", live, live)
	c.mask.Fields[object.key.String()] = map[string]bool{"data.mate": true}
	if found := c.edits(object); len(found) > 0 {
		t.Errorf("got %v, although the Secret was generated", found)
	}
}

func TestEditsOfConfigMaps(t *testing.T) {
	const live = `{apiVersion: v1, kind: ConfigMap, metadata: {name: logbook, managedFields: [{manager: manager, operation: Update, fieldsType: FieldsV1, fieldsV1: {f:data: {f:speed: {}, f:size: {}, f:seen: {}}}}]}, data: {speed: Fast, size: 1Gi, seen: "12"}}`
	c, object := having(t, "create", live, live)
	c.mask.Fields[object.key.String()] = map[string]bool{"data.seen": true} // which is not compared
	expectLines(t, changes(c.edits(object)), "data.size=1Gix", "data.speed=Fastx")
	object.object.Object["immutable"] = true
	if found := c.edits(object); len(found) > 0 {
		t.Errorf("got %v, although it is immutable", found)
	}
}

// TestLongEditsAreSaidInOneLine is about a whole file in a ConfigMap.
func TestLongEditsAreSaidInOneLine(t *testing.T) {
	live := fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: logbook, managedFields: [{manager: manager, operation: Update, fieldsType: FieldsV1, fieldsV1: {f:data: {f:log: {}}}}]}, data: {log: %q}}`, strings.Repeat("a calm day\n", 100))
	c, _ := having(t, "create", live, live)
	edited := 0
	for _, p := range driftPlans(c) {
		if p.Variant != "edit" {
			continue
		}
		edited++
		if text, _ := p.Value.(string); len(text) < 1000 || len(p.Says) > longestReason+100 || strings.Contains(p.Says, "\n") {
			t.Errorf("%d bytes are said so: %s", len(text), p.Says)
		}
	}
	if edited != 1 {
		t.Errorf("%d edits", edited)
	}
}

func TestQuantities(t *testing.T) {
	for text, want := range map[string]map[string]any{
		"500m": {"limits.cpu": "1", "requests.cpu": "250m", "requests.storage": nil, "spec.size": nil, "emptyDir.sizeLimit": "1"},
		"1Gi":  {"limits.memory": "2Gi", "requests.memory": "512Mi"},
		"1m":   {"requests.cpu": nil}, // it has no half
		"1.5k": {"limits.things": "3k"},
	} {
		for path, other := range want {
			got := another(strings.Split(path, "."), text, false)
			if got != other {
				t.Errorf("%s: %s becomes %v, want %v", path, text, got, other)
			}
			if value, ok := got.(string); ok {
				if _, err := resource.ParseQuantity(value); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
		}
	}
}
