// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/prove/world"
)

// resources are the kinds that objects of these tests have.
var resources = map[string][2]string{
	"ConfigMap": {"", "configmaps"}, "Secret": {"", "secrets"}, "Service": {"", "services"}, "Pod": {"", "pods"}, "Namespace": {"", "namespaces"},
	"PersistentVolume": {"", "persistentvolumes"}, "Deployment": {"apps", "deployments"}, "ReplicaSet": {"apps", "replicasets"}, "Frigate": {"sea.example.com", "frigates"},
	"Endpoints": {"", "endpoints"}, "EndpointSlice": {"discovery.k8s.io", "endpointslices"},
}

// stateOf reads objects.
func stateOf(t *testing.T, texts ...string) world.State {
	t.Helper()
	state := world.State{}
	for _, text := range texts {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		object.Object = wholeNumbers(object.Object).(map[string]any) //nolint:forcetypeassert // it stays a map
		kind, known := resources[object.GetKind()]
		if !known {
			t.Fatalf("there is no kind %q here", object.GetKind())
		}
		state[world.Key{Group: kind[0], Resource: kind[1], Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}] = &object
	}
	return state
}

// wholeNumbers makes numbers what they are in objects from a cluster.
func wholeNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = wholeNumbers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = wholeNumbers(v[i])
		}
	case float64:
		return int64(v)
	}
	return value
}

func TestFieldsAreTheSameInEachRun(t *testing.T) {
	for name, test := range map[string]struct{ object, path, want string }{
		"a time":                 {`status: {at: "2026-11-16T21:15:00Z"}`, "status.at", "(time)"},
		"a time with fractions":  {`status: {at: "2026-11-16T21:15:00.123456Z"}`, "status.at", "(time)"},
		"an address":             {`status: {podIP: 10.1.2.3}`, "status.podIP", "(address)"},
		"an IPv6 address":        {`status: {podIP: "fd00::1"}`, "status.podIP", "(address)"},
		"addresses in data":      {`data: {ips: "10.1.2.3\n10.1.2.40\n"}`, "data.ips", "(address)\n(address)\n"},
		"a version in a text":    {`spec: {image: "nginx:1.2.3.4"}`, "spec.image", "nginx:1.2.3.4"},
		"a ReplicaSet in a text": {`status: {message: ReplicaSet "victory-75cdff444f" has progressed.}`, "status.message", `ReplicaSet "victory-*" has progressed.`},
		"any address":            {`spec: {bind: 0.0.0.0}`, "spec.bind", "0.0.0.0"},
		"a UID in a text":        {`status: {volume: pvc-01234567-89ab-cdef-0123-456789abcdef}`, "status.volume", "pvc-(uid)"},
		"another text":           {`spec: {image: "nginx:1.29"}`, "spec.image", "nginx:1.29"},
		"a number":               {`spec: {replicas: 3}`, "spec.replicas", "3"},
		"a switch":               {`spec: {paused: true}`, "spec.paused", "true"},
		"an allocated port":      {`spec: {ports: [{name: web, nodePort: 30123}]}`, "spec.ports[web].nodePort", "(allocated)"},
		"a port that is not yet": {`spec: {ports: [{name: web, nodePort: 0}]}`, "spec.ports[web].nodePort", "0"},
		"an empty map":           {`spec: {selector: {}}`, "spec.selector", "{}"},
		"an empty list":          {`spec: {hosts: []}`, "spec.hosts", "[]"},
		"a list of texts":        {`spec: {hosts: [a, b]}`, "spec.hosts[1]", "b"},
		"a key of conditions":    {`status: {conditions: [{type: Ready, status: "True"}]}`, "status.conditions[Ready].status", "True"},
		"a key of variables":     {`spec: {env: [{name: A, value: x}, {name: B, value: z}]}`, "spec.env[B].value", "z"},
		"a key of tolerations":   {`spec: {tolerations: [{key: gpu, effect: NoSchedule}]}`, "spec.tolerations[gpu].effect", "NoSchedule"},
		"no key, as it is twice": {`spec: {ports: [{name: web, port: 80}, {name: web, port: 81}]}`, "spec.ports[1].port", "81"},
		"a type before a name":   {`status: {list: [{type: A, name: v}, {type: B, name: v}]}`, "status.list[B].name", "v"},

		"what is observed":         {"metadata: {generation: 4}\nstatus: {observedGeneration: 4}", "status.observedGeneration", "current"},
		"what was observed":        {"metadata: {generation: 4}\nstatus: {observedGeneration: 1}", "status.observedGeneration", "3 behind"},
		"a condition that is old":  {"metadata: {generation: 2}\nstatus: {conditions: [{type: Ready, observedGeneration: 1}]}", "status.conditions[Ready].observedGeneration", "1 behind"},
		"a condition that stays":   {"metadata: {generation: 4}\nstatus: {conditions: [{type: Initialized, observedGeneration: 1}]}", "status.conditions[Initialized].observedGeneration", "behind"},
		"the node of a pod":        {"spec: {nodeName: node-2}", "spec.nodeName", "(node)"},
		"the node of a claim":      {"metadata: {annotations: {volume.kubernetes.io/selected-node: node-2}}", "metadata.annotations.volume.kubernetes.io/selected-node", "(node)"},
		"the node of a volume":     {"spec: {nodeSelector: {kubernetes.io/hostname: node-3}}", "spec.nodeSelector.kubernetes.io/hostname", "(node)"},
		"a node in a text":         {"status: {message: runs on node-2}", "status.message", "runs on (node)"},
		"nodes in a text":          {"status: {message: 'node-1,node-2'}", "status.message", "(node),(node)"},
		"a pod like a node":        {"status: {primary: redis-node-0}", "status.primary", "redis-node-0"},
		"such a pod in a text":     {"status: {message: 'a-node-1 is on node-2'}", "status.message", "a-node-1 is on (node)"},
		"a host like a node":       {"spec: {host: web.node-1}", "spec.host", "web.node-1"},
		"a name like one of them":  {"metadata: {labels: {peer: node-2}}", "metadata.labels.peer", "node-2"},
		"a host that is no node":   {"spec: {hostname: node-a}", "spec.hostname", "node-a"},
		"what was reconciled":      {"metadata: {generation: 4}\nstatus: {lastReconciledGeneration: 3}", "status.lastReconciledGeneration", "1 behind"},
		"what is processed":        {"metadata: {generation: 4}\nstatus: {processedGeneration: 4}", "status.processedGeneration", "current"},
		"a version with a hash":    {"metadata: {generation: 4}\nstatus: {syncedResourceVersion: 4-0a1b2c3d}", "status.syncedResourceVersion", "(generation)-0a1b2c3d"},
		"a zone":                   {"metadata: {generation: 4}\nstatus: {zone: 4-a}", "status.zone", "4-a"},
		"an older one with a hash": {"metadata: {generation: 4}\nstatus: {syncedResourceVersion: 3-0a1b}", "status.syncedResourceVersion", "3-0a1b"},
		"of another object":        {"metadata: {generation: 4}\nstatus: {deploymentGeneration: 3}", "status.deploymentGeneration", "3"},
		"of one in a list":         {"metadata: {generation: 4}\nstatus: {generations: [{name: web, lastSeenGeneration: 3}]}", "status.generations[web].lastSeenGeneration", "3"},
		"without a generation":     {"status: {observedGeneration: 7}", "status.observedGeneration", "7"},
	} {
		t.Run(name, func(t *testing.T) {
			state := stateOf(t, "kind: Frigate\n"+test.object)
			for _, object := range state {
				object.SetName("victory")
				if got, there := fieldsOf(object, nil)[test.path]; !there || got != test.want {
					t.Errorf("%s is %q, want %q, in %v", test.path, got, test.want, fieldsOf(object, nil))
				}
			}
		})
	}
}

// TestHashesInNames is about a Deployment that was deleted and created again: its ReplicaSet has the same name as before, unless
// the old one was still there.
func TestHashesInNames(t *testing.T) {
	of := func(hash string) world.State {
		return stateOf(t, `
kind: Deployment
metadata: {name: victory}
status: {collisionCount: `+map[string]string{"abc": "0", "def": "1"}[hash]+`, conditions: [{type: Progressing, message: ReplicaSet "victory-`+hash+`" is available}]}`, `
kind: ReplicaSet
metadata: {name: victory-`+hash+`, labels: {pod-template-hash: `+hash+`}}
spec: {replicas: 1}`, `
kind: Pod
metadata: {name: victory-`+hash+`-x7k2p, generateName: victory-`+hash+`-, labels: {pod-template-hash: `+hash+`}}`)
	}
	if found := NewMask().Differences(ShapeOf(of("abc"), nil), ShapeOf(of("def"), nil)); len(found) > 0 {
		t.Errorf("they differ: %v", found)
	}
	more := of("def")
	for key, object := range of("abc") {
		if key.Resource == "replicasets" {
			more[key] = object
		}
	}
	if found := NewMask().Differences(ShapeOf(of("abc"), nil), ShapeOf(more, nil)); len(found) != 1 || found[0].Object != "ReplicaSet victory-*" {
		t.Errorf("a second ReplicaSet is %v", found)
	}
}

func TestThePastOfContainersIsNoField(t *testing.T) {
	state := stateOf(t, `
kind: Pod
metadata: {name: victory}
status:
  containerStatuses: [{name: web, ready: true, restartCount: 3, lastState: {terminated: {exitCode: 1}}}]
  initContainerStatuses: [{name: copy, restartCount: 1, lastState: {}}]`)
	for _, object := range state {
		want := Fields{
			"kind": "Pod", "metadata.name": "victory", "status.containerStatuses[web].name": "web", "status.containerStatuses[web].ready": "true",
			"status.initContainerStatuses[copy].name": "copy",
		}
		if got := fieldsOf(object, nil); !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

func TestWhatEveryWriteChangesIsNoField(t *testing.T) {
	state := stateOf(t, `
kind: Frigate
metadata:
  name: victory
  generateName: vic
  uid: 01234567-89ab-cdef-0123-456789abcdef
  resourceVersion: "17"
  generation: 3
  creationTimestamp: "2026-11-16T21:15:00Z"
  managedFields: [{manager: kubectl}]
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: "{}"
    deployment.kubernetes.io/revision: "2"
    deployment.kubernetes.io/revision-history: "1"
    deprecated.daemonset.template.generation: "2"
    captain: nelson
`)
	for _, object := range state {
		want := Fields{"kind": "Frigate", "metadata.name": "victory", "metadata.annotations.captain": "nelson"}
		if got := fieldsOf(object, nil); !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// TestCopiesOfTheNudge are no difference: operators may copy annotations of a custom resource to objects and to their templates.
func TestCopiesOfTheNudge(t *testing.T) {
	for _, object := range stateOf(t, `
kind: Deployment
metadata:
  name: victory
  annotations: {opdock.dev/nudge: "true"}
spec:
  template:
    metadata:
      annotations: {opdock.dev/nudge: "true", captain: nelson}
`) {
		want := Fields{"kind": "Deployment", "metadata.name": "victory", "spec.template.metadata.annotations.captain": "nelson"}
		if got := fieldsOf(object, nil); !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

func TestOwnersAreNamed(t *testing.T) {
	state := stateOf(t, `
kind: Frigate
metadata: {name: victory, namespace: default, uid: u1}
`, `
kind: Deployment
metadata:
  name: victory
  namespace: default
  ownerReferences: [{name: victory, kind: Frigate, uid: u1}]
`, `
kind: ConfigMap
metadata:
  name: lost
  namespace: default
  ownerReferences: [{name: victory, kind: Frigate, uid: u0}]
`)
	shape := ShapeOf(state, nil)
	for object, want := range map[string]string{
		"Deployment default/victory": "of Frigate default/victory",
		"ConfigMap default/lost":     "of an object that is gone",
	} {
		if got := shape.Objects[object]["metadata.ownerReferences[victory].uid"]; got != want {
			t.Errorf("the owner of %s is %q, want %q", object, got, want)
		}
	}
}

func TestSecretsAreHidden(t *testing.T) {
	read := func(text string) Fields {
		for _, object := range stateOf(t, text) {
			return fieldsOf(object, nil)
		}
		return nil
	}
	one := read("kind: Secret\nmetadata: {name: key}\ntype: Opaque\ndata: {password: c2VjcmV0}")
	other := read("kind: Secret\nmetadata: {name: key}\ntype: Opaque\ndata: {password: b3RoZXI=}")
	plain := read("kind: ConfigMap\nmetadata: {name: key}\ndata: {password: c2VjcmV0}")
	const path = "data.password"
	if one[path] == "c2VjcmV0" || one[path] == "" {
		t.Errorf("a Secret shows %q", one[path])
	}
	if one[path] == other[path] {
		t.Error("two Secrets with different data cannot be told apart")
	}
	if one["type"] != "Opaque" || plain[path] != "c2VjcmV0" {
		t.Errorf("got %v and %v, want only the data of Secrets hidden", one, plain)
	}
}

func TestShapeOfAState(t *testing.T) {
	const old = "kind: ConfigMap\nmetadata: {name: old, namespace: default, resourceVersion: \"1\"}\ndata: {a: b}"
	before := stateOf(t, old)
	for name, test := range map[string]struct {
		state   []string
		objects map[string]string // and one field of each, as path=value
		counts  map[string]int
	}{
		"what was there before is no part of it": {state: []string{old}},
		"unless it has changed": {
			state:   []string{"kind: ConfigMap\nmetadata: {name: old, namespace: default, resourceVersion: \"2\"}\ndata: {a: c}"},
			objects: map[string]string{"ConfigMap default/old": "data.a=c"},
		},
		"a write that changed nothing is none": {state: []string{"kind: ConfigMap\nmetadata: {name: old, namespace: default, resourceVersion: \"2\"}\ndata: {a: b}"}},
		"or is gone":                           {objects: map[string]string{"ConfigMap default/old": "=gone, although it was there before"}},
		"new objects are": {
			state:   []string{old, "kind: Frigate\nmetadata: {name: victory, namespace: default}\nspec: {guns: 104}", "kind: Namespace\nmetadata: {name: sea}"},
			objects: map[string]string{"Frigate default/victory": "spec.guns=104", "Namespace sea": "metadata.name=sea"},
		},
		"random names are counted": {
			state: []string{
				old, "kind: Pod\nmetadata: {name: victory-x1y2z, namespace: default, generateName: victory-}",
				"kind: Pod\nmetadata: {name: victory-a1b2c, namespace: default, generateName: victory-}",
			},
			counts: map[string]int{"Pod default/victory-*": 2},
		},
		"a name with a UID is random": {
			state:  []string{old, "{kind: PersistentVolume, metadata: {name: pvc-239e4be4-29b5-4678-ae91-044dc4c09008}}", "{kind: PersistentVolume, metadata: {name: pvc-5d5f67c2-897b-450d-a646-7b9551563a65}}"},
			counts: map[string]int{"PersistentVolume pvc-*": 2},
		},
		"a name that was chosen is not random": {
			state:   []string{old, "kind: Pod\nmetadata: {name: admiral, namespace: default, generateName: victory-}"},
			objects: map[string]string{"Pod default/admiral": "kind=Pod"},
		},
		"ReplicaSets to go back to are not part of it": {
			state: []string{
				old, "kind: ReplicaSet\nmetadata: {name: victory-1, namespace: default}\nspec: {replicas: 0}",
				"kind: ReplicaSet\nmetadata: {name: victory-2, namespace: default}\nspec: {replicas: 2}",
			},
			objects: map[string]string{"ReplicaSet default/victory-2": "spec.replicas=2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			shape := ShapeOf(stateOf(t, test.state...), before)
			if len(shape.Objects) != len(test.objects) {
				t.Errorf("got %v, want %v", shape.Objects, test.objects)
			}
			for object, field := range test.objects {
				fields, there := shape.Objects[object]
				if !there || !hasField(fields, field) {
					t.Errorf("%s is %v, want %s", object, fields, field)
				}
			}
			if !maps.Equal(shape.Counts, test.counts) && len(shape.Counts)+len(test.counts) > 0 {
				t.Errorf("counted %v, want %v", shape.Counts, test.counts)
			}
		})
	}
}

func hasField(fields Fields, want string) bool {
	for path, value := range fields {
		if path+"="+value == want {
			return true
		}
	}
	return false
}

// TestAddressesThatSomebodyChose has addresses, times and node ports, which are compared, unlike those that are allocated.
func TestAddressesThatSomebodyChose(t *testing.T) {
	known := Texts(map[string]any{"address": "192.0.2.10", "peers": []any{"192.0.2.11:80"}, "until": "2030-01-01T00:00:00Z", "any": "0.0.0.0", "version": "1.2.3", "door": int64(30077), "port": int64(8080)})
	slices.Sort(known)
	if want := []string{"0.0.0.0", "192.0.2.10", "192.0.2.11", "2030-01-01T00:00:00Z", "30077"}; !slices.Equal(known, want) {
		t.Fatalf("got %q, want %q", known, want)
	}
	for about, test := range map[string]struct {
		object, path, want string
	}{
		"chosen":                 {"kind: Service\nspec: {loadBalancerIP: 192.0.2.10}", "spec.loadBalancerIP", "192.0.2.10"},
		"another":                {"kind: Service\nspec: {loadBalancerIP: 192.0.2.12}", "spec.loadBalancerIP", "(address)"},
		"allocated by chance":    {"kind: Service\nspec: {clusterIP: 192.0.2.10}", "spec.clusterIP", "(address)"},
		"a list by chance":       {"kind: Service\nspec: {clusterIPs: [192.0.2.10]}", "spec.clusterIPs[0]", "(address)"},
		"of a pod by chance":     {"kind: Pod\nstatus: {podIP: 192.0.2.10}", "status.podIP", "(address)"},
		"chosen, in a text":      {"kind: ConfigMap\ndata: {hosts: '192.0.2.10,192.0.2.12'}", "data.hosts", "192.0.2.10,(address)"},
		"a time that was chosen": {"kind: Frigate\nspec: {until: '2030-01-01T00:00:00Z'}", "spec.until", "2030-01-01T00:00:00Z"},
		"a port of nodes":        {"kind: Service\nspec: {ports: [{name: web, nodePort: 30077}]}", "spec.ports[web].nodePort", "30077"},
		"another such port":      {"kind: Service\nspec: {ports: [{name: web, nodePort: 30078}]}", "spec.ports[web].nodePort", "(allocated)"},
		"another time":           {"kind: Frigate\nspec: {until: '2031-01-01T00:00:00Z'}", "spec.until", "(time)"},
	} {
		for _, object := range stateOf(t, test.object+"\nmetadata: {name: victory}") {
			if got := ShapeOf(world.State{{Kind: object.GetKind(), Name: "victory"}: object}, nil, known...).Objects[object.GetKind()+" victory"][test.path]; got != test.want {
				t.Errorf("%s: got %q, want %q", about, got, test.want)
			}
		}
	}
}

// TestNodesThatSomebodyChose are compared. Longer names that end like them are none.
func TestNodesThatSomebodyChose(t *testing.T) {
	known := Texts(map[string]any{
		"node": "node-2", "peers": "redis-node-0,node-3", "host": "web.node-1",
		"weights": map[string]any{"node-1": int64(5), "node-1.x": int64(1)},
	})
	slices.Sort(known)
	if want := []string{"node-1", "node-2", "node-3"}; !slices.Equal(known, want) {
		t.Errorf("got %q, want %q", known, want)
	}
}

// TestKeysThatAreNodes has values of nodes, on which pods may land or not.
func TestKeysThatAreNodes(t *testing.T) {
	shape := func(status string, known ...string) Shape {
		return ShapeOf(stateOf(t, "kind: Frigate\nmetadata: {name: victory}\nstatus: "+status), nil, known...)
	}
	for about, test := range map[string]struct {
		want, got string
		known     []string
		differs   []string // fields
	}{
		"a list": {
			"{nodes: [{name: node-3, up: true}, {name: node-1, up: true}]}",
			"{nodes: [{name: node-2, up: true}, {name: node-3, up: true}]}", nil, nil,
		},
		"a map":         {"{nodes: {node-1: {pods: 1}}}", "{nodes: {node-2: {pods: 1}}}", nil, nil},
		"another value": {"{nodes: {node-1: 1}}", "{nodes: {node-2: 2}}", nil, []string{"status.nodes.(node 1)"}},
		"one less": {
			"{nodes: [{name: node-1}, {name: node-2}]}", "{nodes: [{name: node-3}]}", nil,
			[]string{"status.nodes[(node 2)].name"},
		},
		"none": {"{nodes: {node-1: 1}}", "{nodes: {}}", nil, []string{"status.nodes.(node 1)"}},
		"of the scenario": {
			"{nodes: {node-1: 1}}", "{nodes: {node-2: 1}}", []string{"node-1"},
			[]string{"status.nodes.(node 1)", "status.nodes.node-1"},
		},
		"longer names": {
			"{pods: {a-node-0: 1}}", "{pods: {a-node-1: 1}}", nil,
			[]string{"status.pods.a-node-0", "status.pods.a-node-1"},
		},
		"an empty map":     {"{canary: {}, blueGreen: {}, up: true}", "{up: true}", nil, nil},
		"others beside it": {"{at: {web: 1, node-1: 2}}", "{at: {web: 2, node-3: 2}}", nil, []string{"status.at.web"}},
	} {
		var fields []string
		for _, d := range NewMask().Differences(shape(test.want, test.known...), shape(test.got, test.known...)) {
			fields = append(fields, d.Path)
		}
		slices.Sort(fields)
		if !slices.Equal(fields, test.differs) {
			t.Errorf("%s: %q differ, want %q", about, fields, test.differs)
		}
	}
}

// TestPodsBehindAddresses differ from run to run, in their names and nodes.
func TestPodsBehindAddresses(t *testing.T) {
	for _, object := range stateOf(t, `
kind: Endpoints
metadata: {name: victory}
subsets: [{addresses: [{ip: 10.1.2.3, nodeName: node-1, targetRef: {kind: Pod, name: victory-x7k2p}}], ports: [{name: web, port: 80}]}]`, `
kind: EndpointSlice
metadata: {name: victory}
endpoints: [{addresses: [10.1.2.3], nodeName: node-1, zone: a, conditions: {ready: true}, targetRef: {name: victory-x7k2p}}]`) {
		want := Fields{"kind": "Endpoints", "metadata.name": "victory", "subsets[0].addresses[0].ip": "(address)", "subsets[0].ports[web].name": "web", "subsets[0].ports[web].port": "80"}
		if object.GetKind() == "EndpointSlice" {
			want = Fields{"kind": "EndpointSlice", "metadata.name": "victory", "endpoints[0].addresses[0]": "(address)", "endpoints[0].conditions.ready": "true"}
		}
		if got := fieldsOf(object, nil); !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
