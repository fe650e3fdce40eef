// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"fmt"
	"strings"
	"testing"
)

// badTemplates are mistakes in a pod template, below spec.template.
var badTemplates = []bad{
	{"no containers", `{spec: {template: {spec: {containers: []}}}}`, `spec.template.spec.containers in body should have at least 1 items`},
	{"container without a name", `{spec: {template: {spec: {containers: [{}]}}}}`, `spec.template.spec.containers[0].name: Required value`},
	{"container twice", `{spec: {template: {spec: {containers: [{name: a}, {name: a}]}}}}`, `spec.template.spec.containers[1]: Duplicate value: {"name":"a"}`},
	{"container and init container of one name", `{spec: {template: {spec: {initContainers: [{name: a}], containers: [{name: a}]}}}}`, `spec.template.spec.initContainers: Invalid value: a container and an init container have the same name`},
	{"sidecar among the containers", `{spec: {template: {spec: {containers: [{name: a, restartPolicy: Always}]}}}}`, `spec.template.spec.containers: Invalid value: restartPolicy can only be set for initContainers`},
	{"unknown field of a container", `{spec: {template: {spec: {containers: [{name: a, imagePolicy: Always}]}}}}`, `unknown field "spec.template.spec.containers[0].imagePolicy"`},
	{"port name twice", `{spec: {template: {spec: {containers: [{name: a, ports: [{name: p, containerPort: 1}, {name: p, containerPort: 2}]}]}}}}`, `spec.template.spec.containers[0].ports: Invalid value: port names must be unique`},
	{"mount of an unknown volume", `{spec: {template: {spec: {containers: [{name: a, volumeMounts: [{name: v, mountPath: /v}]}]}}}}`, `spec.template.spec.containers: Invalid value: a volumeMount names a volume that is not in volumes`},
	{"mount of an unknown volume at first", `{spec: {template: {spec: {initContainers: [{name: i, volumeMounts: [{name: v, mountPath: /v}]}], containers: [{name: a}]}}}}`, `spec.template.spec.initContainers: Invalid value: a volumeMount names a volume that is not in volumes`},
	{"mount of two paths", `{spec: {template: {spec: {volumes: [{name: v, emptyDir: {}}], containers: [{name: a, volumeMounts: [{name: v, mountPath: /v, subPath: a, subPathExpr: b}]}]}}}}`, `subPath and subPathExpr cannot both be set`},
	{"projection of two kinds", `{spec: {template: {spec: {volumes: [{name: v, projected: {sources: [{secret: {name: a}, configMap: {name: a}}]}}], containers: [{name: a}]}}}}`, `exactly one of configMap, secret, downwardAPI and serviceAccountToken must be set`},
	{"file of two fields", `{spec: {template: {spec: {volumes: [{name: v, downwardAPI: {items: [{path: a}]}}], containers: [{name: a}]}}}}`, `exactly one of fieldRef and resourceFieldRef must be set`},
	{"bad quantity", `{spec: {template: {spec: {containers: [{name: a, resources: {limits: {memory: 1G1}}}]}}}}`, `spec.template.spec.containers[0].resources.limits.memory in body should match`},
	{"image with a space", `{spec: {image: "a b"}}`, `spec.image in body should match '^\S+$'`},
}

func TestBadPodClusters(t *testing.T) {
	refuses(t, "kubegroup_v1_podcluster.yaml", append([]bad{
		{"negative count", `{spec: {podReplicas: -1}}`, `spec.podReplicas: Invalid value: -1: spec.podReplicas in body should be greater than or equal to 0`},
		{"half a pod", `{spec: {podReplicas: 1.5}}`, `spec.podReplicas in body must be of type int32: "float64"`},
		{"too many", `{spec: {podReplicas: 5001}}`, `spec.podReplicas in body should be less than or equal to 5000`},
		{"unknown field", `{spec: {replicas: 2}}`, `unknown field "spec.replicas"`},
		{"name too long", `{metadata: {name: ` + strings.Repeat("a", 59) + `}}`, `the name must have at most 58 characters and no dots`},
		{"name with a dot", `{metadata: {name: a.b}}`, `the name must have at most 58 characters and no dots`},
		{"nothing may be missing", `{spec: {updateStrategy: {maxUnavailable: 0}}}`, `spec.updateStrategy.maxUnavailable: Invalid value: 0: must be a number from 1 to 2147483647, or a percentage from 1% to 100%`},
		{"more than a number can be", `{spec: {updateStrategy: {maxUnavailable: 2147483648}}}`, `must be a number from 1 to 2147483647`},
		{"nothing of all may be missing", `{spec: {updateStrategy: {maxUnavailable: "0%"}}}`, `must be a number from 1 to 2147483647, or a percentage from 1% to 100%`},
		{"negative partition", `{spec: {updateStrategy: {partition: -1}}}`, `spec.updateStrategy.partition in body should be greater than or equal to 0`},
		{"partition of nothing", `{spec: {updateStrategy: {type: OnDelete, partition: 1}}}`, `spec.updateStrategy: Invalid value: partition cannot be set if type is OnDelete`},
		{"unknown strategy", `{spec: {updateStrategy: {type: Recreate}}}`, `spec.updateStrategy.type: Unsupported value: "Recreate": supported values: "RollingUpdate", "OnDelete"`},
		{"replaced before it is available", `{spec: {minReadySeconds: 10, progressDeadlineSeconds: 10}}`, `spec.progressDeadlineSeconds: Invalid value: progressDeadlineSeconds must be greater than minReadySeconds`},
		{"service of a bad name", `{spec: {serviceName: "1a"}}`, `spec.serviceName in body should match`},
	}, badTemplates...))
}

func TestPodClusterKeepsItsServiceName(t *testing.T) {
	const want = `spec.serviceName: Invalid value: serviceName is part of the pods' host names and cannot be changed; create another PodCluster`
	base := sample(t, "kubegroup_v1_podcluster.yaml")
	refusesChange(t, base, []bad{{"set", `{spec: {serviceName: a}}`, want}})
	refusesChange(t, patched(t, base, `{spec: {serviceName: a}}`), []bad{
		{"changed", `{spec: {serviceName: b}}`, want},
		{"removed", `{spec: {serviceName: null}}`, want},
	})
}

func TestBadRobots(t *testing.T) {
	refuses(t, "robot_v1_robot.yaml", append([]bad{
		{"negative count", `{spec: {replicas: -1}}`, `spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0`},
		{"more than a number can be", `{spec: {strategy: {rollingUpdate: {maxUnavailable: 5000000000}}}}`, `must be a number from 0 to 2147483647`},
		{"half a robot", `{spec: {replicas: 1.5}}`, `spec.replicas in body must be of type int32: "float64"`},
		{"unknown field", `{spec: {size: 2}}`, `unknown field "spec.size"`},
		{"deployment of a bad name", `{spec: {deploymentName: Robot_One}}`, `spec.deploymentName in body should match`},
		{"deployment of a long name", `{spec: {deploymentName: ` + strings.Repeat("a", 64) + `}}`, `spec.deploymentName: Too long: may not be more than 63 bytes`},
		{"name too long", `{metadata: {name: ` + strings.Repeat("a", 64) + `}}`, `the name is also a label of the pods: it must have at most 63 characters`},
	}, badTemplates...))
}

func TestBadCollectors(t *testing.T) {
	const selectors = `spec.selector: Invalid value: operator must be In or NotIn with values, or Exists or DoesNotExist without values`
	refuses(t, "collector_v1_collector.yaml", []bad{
		{"no selector", `{spec: {selector: null}}`, `spec.selector: Required value`},
		{"unknown operator", `{spec: {selector: {matchExpressions: [{key: a, operator: Like, values: [b]}]}}}`, selectors},
		{"In without values", `{spec: {selector: {matchExpressions: [{key: a, operator: In}]}}}`, selectors},
		{"Exists with values", `{spec: {selector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}}`, selectors},
		{"unknown readiness", `{spec: {readiness: Maybe}}`, `spec.readiness: Unsupported value: "Maybe": supported values: "Any", "Ready"`},
		{"unknown family", `{spec: {ipFamilies: [IPv5]}}`, `spec.ipFamilies[0]: Unsupported value: "IPv5"`},
		{"family twice", `{spec: {ipFamilies: [IPv4, IPv4]}}`, `spec.ipFamilies[1]: Duplicate value: "IPv4"`},
		{"negative wait", `{spec: {debounceMilliseconds: -1}}`, `spec.debounceMilliseconds in body should be greater than or equal to 0`},
		{"output of a bad name", `{spec: {output: {configMapName: "a b"}}}`, `spec.output.configMapName in body should match`},
		{"output without a name", `{spec: {output: {}}}`, `spec.output.configMapName: Required value`},
		{"unknown field", `{spec: {namespace: a}}`, `unknown field "spec.namespace"`},
		{"name too long", `{metadata: {name: ` + strings.Repeat("a", 64) + `}}`, `it must have at most 63 characters`},
	})
}

func TestBadKAPPs(t *testing.T) {
	const (
		robot      = `apiVersion: robot.llleon.io/v1, kind: Robot`
		podCluster = `apiVersion: kubegroup.generals.space/v1, kind: PodCluster`
		kinds      = `spec.components[0].resource: Invalid value: must be an AppService (app.example.com/v1 or v1alpha1), PodCluster`
	)
	refuses(t, "kanggege_v1_kapp.yaml", []bad{
		{"no components", `{spec: {components: []}}`, `spec.components in body should have at least 1 items`},
		{"component twice", `{spec: {components: [{name: a, resource: {` + robot + `}}, {name: a, resource: {` + robot + `}}]}}`, `spec.components[1]: Duplicate value: {"name":"a"}`},
		{"component without a resource", `{spec: {components: [{name: a}]}}`, `spec.components[0].resource: Required value`},
		{"resource without a kind", `{spec: {components: [{name: a, resource: {apiVersion: robot.llleon.io/v1}}]}}`, `spec.components[0].resource.kind: Required value`},
		{"resource of another kind", `{spec: {components: [{name: a, resource: {apiVersion: v1, kind: Secret}}]}}`, kinds},
		{"resource of the same kind", `{spec: {components: [{name: a, resource: {apiVersion: kanggege.k8sio.com/v1, kind: KAPP}}]}}`, kinds},
		{"resource of another group", `{spec: {components: [{name: a, resource: {apiVersion: example.com/v1, kind: Robot}}]}}`, kinds},
		{"resource of a bad name", `{spec: {components: [{name: a, resource: {` + robot + `, metadata: {name: "a/b"}}}]}}`, `spec.components[0].resource.metadata.name: Invalid value: "a/b"`},
		{"self-dependency", `{spec: {components: [{name: a, resource: {` + robot + `}}, {name: b, dependsOn: [b], resource: {` + robot + `}}]}}`, `spec.components[1].dependsOn: Invalid value: b cannot depend on itself`},
		{"unknown dependency", `{spec: {components: [{name: a, resource: {` + robot + `}}, {name: b, dependsOn: [c], resource: {` + robot + `}}]}}`, `spec.components: Invalid value: dependsOn names components that do not exist: ["b depends on c"]`},
		{"dependency twice", `{spec: {components: [{name: a, resource: {` + robot + `}}, {name: b, dependsOn: [a, a], resource: {` + robot + `}}]}}`, `spec.components[1].dependsOn[1]: Duplicate value: "a"`},
		{"cycle of two", `{spec: {components: [{name: a, dependsOn: [b], resource: {` + robot + `}}, {name: b, dependsOn: [a], resource: {` + robot + `}}, {name: c, resource: {` + robot + `}}]}}`, `spec.components: Invalid value: a and b depend on each other`},
		{"cycle of three", `{spec: {components: [{name: a, dependsOn: [b], resource: {` + robot + `}}, {name: b, dependsOn: [c], resource: {` + robot + `}}, {name: c, dependsOn: [a], resource: {` + robot + `}}, {name: d, resource: {` + robot + `}}]}}`, `spec.components: Invalid value: components form a dependency cycle: a → b → c → a`},
		{"cycle of four that all lead to", `{spec: {components: [{name: a, dependsOn: [b, e], resource: {` + robot + `}}, {name: b, dependsOn: [c], resource: {` + robot + `}}, {name: c, dependsOn: [d], resource: {` + robot + `}}, {name: d, dependsOn: [a], resource: {` + robot + `}}, {name: e, resource: {` + robot + `}}]}}`, `spec.components: Invalid value: every component is a dependency of another, so some of them form a cycle: ["a → b, e", "b → c", "c → d", "d → a"]`},
		{"31 components", `{spec: {components: [` + components(31) + `]}}`, `spec.components: Too many: 31: must have at most 30 items`},
		{"cycle of all", `{spec: {components: [{name: a, dependsOn: [b], resource: {` + robot + `}}, {name: b, dependsOn: [c], resource: {` + robot + `}}, {name: c, dependsOn: [a], resource: {` + robot + `}}]}}`, `spec.components: Invalid value: every component depends on another, so none can be created first: ["a → b", "b → c", "c → a"]`},
		{"name too long", `{metadata: {name: ` + strings.Repeat("a", 64) + `}}`, `the name is also a label of the components and a prefix of their names: it must have at most 63 characters and no dots`},
		{"name with a dot", `{metadata: {name: a.b}}`, `it must have at most 63 characters and no dots`},
		{"object's own name too long", `{spec: {components: [{name: b, resource: {` + robot + `, metadata: {name: ` + strings.Repeat("a", 64) + `}}}]}}`, `the name of a component's object is too long`},
		{"names too long together", `{metadata: {name: ` + strings.Repeat("a", 60) + `}}`, `the name of a component's object is too long: resource.metadata.name, or KAPP-COMPONENT if it is not set, can have 63 characters, or 58 for a PodCluster`},
		{"names too long for pods", `{metadata: {name: ` + strings.Repeat("a", 57) + `}, spec: {components: [{name: b, resource: {` + podCluster + `}}]}}`, `58 for a PodCluster`},
		{"unknown field", `{spec: {replicas: 1}}`, `unknown field "spec.replicas"`},
	})
}

// components are so many components in the notation of the tables.
func components(count int) string {
	list := make([]string, count)
	for i := range list {
		list[i] = fmt.Sprintf("{name: c%d, resource: {apiVersion: robot.llleon.io/v1, kind: Robot}}", i)
	}
	return strings.Join(list, ", ")
}

func TestKAPPComponentKeepsItsKind(t *testing.T) {
	refusesChange(t, sample(t, "kanggege_v1_kapp.yaml"), []bad{{
		"changed", `{spec: {components: [{name: web, resource: {apiVersion: robot.llleon.io/v1, kind: Robot}}]}}`,
		`spec.components[0].resource: Invalid value: the kind of a component cannot change; add a component with another name and remove this one`,
	}})
}

func TestGoodKinds(t *testing.T) {
	accepts(t, "kubegroup_v1_podcluster.yaml", map[string]string{
		"no pods":           `{spec: {podReplicas: 0}}`,
		"all at once":       `{spec: {updateStrategy: {maxUnavailable: "100%"}}}`,
		"on delete":         `{spec: {updateStrategy: {type: OnDelete}}}`,
		"image by template": `{spec: {template: {spec: {containers: [{name: a, image: b}]}}}}`,
		"sidecar":           `{spec: {template: {spec: {initContainers: [{name: i, restartPolicy: Always}], containers: [{name: a}]}}}}`,
		"longest name":      `{metadata: {name: ` + strings.Repeat("a", 58) + `}}`,
	})
	accepts(t, "robot_v1_robot.yaml", map[string]string{
		"without a deploymentName": `{spec: {deploymentName: null}}`,
		"empty spec":               `{spec: {deploymentName: null, replicas: null}}`,
		"longest name":             `{metadata: {name: ` + strings.Repeat("a", 63) + `}}`,
	})
	accepts(t, "collector_v1_collector.yaml", map[string]string{
		"all operators": `{spec: {selector: {matchExpressions: [{key: a, operator: In, values: [b]}, {key: a, operator: NotIn, values: [c]}, {key: d, operator: Exists}, {key: e, operator: DoesNotExist}]}}}`,
		"no wait":       `{spec: {debounceMilliseconds: 0}}`,
	})
	accepts(t, "kanggege_v1_kapp.yaml", map[string]string{
		"diamond": `{spec: {components: [
			{name: a, resource: {apiVersion: robot.llleon.io/v1, kind: Robot}},
			{name: b, dependsOn: [a], resource: {apiVersion: collector.ip/v1, kind: Collector}},
			{name: c, dependsOn: [a], resource: {apiVersion: app.example.com/v1alpha1, kind: AppService}},
			{name: d, dependsOn: [b, c], resource: {apiVersion: kubegroup.generals.space/v1, kind: PodCluster}}]}}`,
		// Too long a name of its own, but the object's name does not depend on it.
		"long name and named object": `{metadata: {name: ` + strings.Repeat("a", 63) + `}, spec: {components: [{name: b, resource: {apiVersion: robot.llleon.io/v1, kind: Robot, metadata: {name: c}}}]}}`,
	})
}

func TestKindDefaults(t *testing.T) {
	defaults(t, "kubegroup_v1_podcluster.yaml", `{spec: {podReplicas: null}}`, `
spec:
  podReplicas: 1
  image: nginx:1.29
  template: {spec: {containers: [{name: main}]}}
  securityProfile: RuntimeDefault
  updateStrategy: {type: RollingUpdate, maxUnavailable: 1, inPlace: IfPossible}
  progressDeadlineSeconds: 600
  revisionHistoryLimit: 10
`)
	defaults(t, "robot_v1_robot.yaml", `{spec: {replicas: null, deploymentName: null}}`, `
spec:
  replicas: 1
  image: nginx:1.29
  template: {spec: {containers: [{name: robot}]}}
  securityProfile: RuntimeDefault
`)
	defaults(t, "robot_v1_robot.yaml", `{spec: {template: {spec: {containers: [{name: a, ports: [{containerPort: 80}]}]}}}}`, `
spec:
  replicas: 2
  deploymentName: robot-one
  image: nginx:1.29
  template: {spec: {containers: [{name: a, ports: [{containerPort: 80, protocol: TCP}]}]}}
  securityProfile: RuntimeDefault
`)
	defaults(t, "collector_v1_collector.yaml", `{}`, `
spec:
  selector: {}
  readiness: Any
  debounceMilliseconds: 500
`)
	defaults(t, "kanggege_v1_kapp.yaml", `{spec: {components: [{name: a, resource: {apiVersion: robot.llleon.io/v1, kind: Robot, spec: {replicas: 2}}}]}}`, `
spec:
  components: [{name: a, resource: {apiVersion: robot.llleon.io/v1, kind: Robot, spec: {replicas: 2}}}]
`)
}
