// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"strings"
	"testing"
)

func TestBadAppServices(t *testing.T) {
	table := []bad{
		{"no image", `{spec: {image: null}}`, `spec.image: Required value`},
		{"empty image", `{spec: {image: ""}}`, `spec.image: Invalid value: "": spec.image in body should be at least 1 chars long`},
		{"image with a space", `{spec: {image: "nginx 1"}}`, `spec.image: Invalid value: "nginx 1": spec.image in body should match '^\S+$'`},
		{"negative size", `{spec: {size: -1}}`, `spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 0`},
		{"half a pod", `{spec: {size: 1.5}}`, `spec.size in body must be of type int32: "float64"`},
		{"size as a word", `{spec: {size: two}}`, `spec.size in body must be of type integer: "string"`},
		{"too large", `{spec: {size: 10001}}`, `spec.size in body should be less than or equal to 10000`},
		{"unknown field", `{spec: {replicas: 2}}`, `unknown field "spec.replicas"`},
		{"name with a dot", `{metadata: {name: nginx.app}}`, `the Service has the same name: it must have at most 63 characters`},
		{"name with a digit in front", `{metadata: {name: 1nginx}}`, `start with a letter and not end with '-'`},
		{"name too long", `{metadata: {name: ` + strings.Repeat("a", 64) + `}}`, `the Service has the same name: it must have at most 63 characters`},

		{"port 0", `{spec: {ports: [{port: 0}]}}`, `spec.ports[0].port in body should be greater than or equal to 1`},
		{"port too high", `{spec: {ports: [{port: 65536}]}}`, `spec.ports[0].port in body should be less than or equal to 65535`},
		{"port twice", `{spec: {ports: [{name: a, port: 80}, {name: b, port: 80}]}}`, `spec.ports[1]: Duplicate value: {"port":80,"protocol":"TCP"}`},
		{"port name twice", `{spec: {ports: [{name: web, port: 80}, {name: web, port: 81}]}}`, `spec.ports: Invalid value: port names must be unique`},
		{"two ports without names", `{spec: {ports: [{port: 80}, {name: b, port: 81}]}}`, `spec.ports: Invalid value: every port needs a name if there is more than one`},
		{"nodePort below the range", `{spec: {ports: [{port: 80, nodePort: 80}]}}`, `spec.ports[0].nodePort: Invalid value: 80: must be from 30000 to 32767`},
		{"nodePort above the range", `{spec: {ports: [{port: 80, nodePort: 32768}]}}`, `spec.ports[0].nodePort: Invalid value: 32768: must be from 30000 to 32767`},
		{"nodePort twice", `{spec: {ports: [{name: a, port: 80, nodePort: 30001}, {name: b, port: 81, nodePort: 30001}]}}`, `spec.ports: Invalid value: nodePorts must be unique`},
		{"nodePort of a ClusterIP", `{spec: {service: {type: ClusterIP}}}`, `spec.service: Invalid value: a port has a nodePort, so service.type must be NodePort or LoadBalancer, or omitted`},
		{"unknown protocol", `{spec: {ports: [{port: 80, protocol: HTTP}]}}`, `spec.ports[0].protocol: Unsupported value: "HTTP": supported values: "TCP", "UDP", "SCTP"`},
		{"targetPort too high", `{spec: {ports: [{port: 80, targetPort: 65536}]}}`, `spec.ports[0].targetPort: Invalid value: 65536: must be a number from 1 to 65535 or the name of a port`},
		{"targetPort without a letter", `{spec: {ports: [{port: 80, targetPort: "80"}]}}`, `spec.ports[0].targetPort in body should match`},
		{"targetPort with a long name", `{spec: {ports: [{port: 80, targetPort: a-name-of-16-abc}]}}`, `spec.ports[0].targetPort: Too long: may not be more than 15 bytes`},
		{"port of a probe that is none", `{spec: {livenessProbe: {tcpSocket: {port: 99999999999}}}}`, `spec.livenessProbe.tcpSocket.port: Invalid value: 99999999999: must be a number from 1 to 65535`},
		{"memory with a broken exponent", `{spec: {resources: {limits: {memory: "1e1.5"}}}}`, `spec.resources.limits.memory in body should match`},
		{"memory without end", `{spec: {resources: {requests: {memory: "1e99999999999999999999"}}}}`, `spec.resources.requests.memory in body should match`},
		{"size of a volume with a broken exponent", `{spec: {volumes: [{name: a, emptyDir: {sizeLimit: "1e1.5"}}]}}`, `sizeLimit in body should match`},
		{"unit with a broken exponent", `{spec: {envs: [{name: A, valueFrom: {resourceFieldRef: {containerName: a, resource: limits.cpu, divisor: "1e1.5"}}}]}}`, `divisor in body should match`},
		{"class without a load balancer", `{spec: {service: {loadBalancerClass: a}}}`, `spec.service.loadBalancerClass: Invalid value: loadBalancerClass can only be set if type is LoadBalancer`},

		{"variable with value and source", `{spec: {envs: [{name: A, value: a, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}}`, `spec.envs[0]: Invalid value: value and valueFrom cannot both be set`},
		{"variable twice", `{spec: {envs: [{name: A}, {name: A}]}}`, `spec.envs[1]: Duplicate value: {"name":"A"}`},
		{"variable with two sources", `{spec: {envs: [{name: A, valueFrom: {secretKeyRef: {name: a, key: b}, configMapKeyRef: {name: a, key: b}}}]}}`, `exactly one of configMapKeyRef, secretKeyRef, fieldRef and resourceFieldRef must be set`},
		{"envFrom without a source", `{spec: {envFrom: [{prefix: A_}]}}`, `spec.envFrom[0]: Invalid value: exactly one of configMapRef and secretRef must be set`},
		{"bad quantity", `{spec: {resources: {requests: {cpu: lots}}}}`, `spec.resources.requests.cpu: Invalid value: "lots": spec.resources.requests.cpu in body should match`},
		{"more memory than the limit", `{spec: {resources: {requests: {memory: 2Gi}, limits: {memory: 1024Mi}}}}`, `spec.resources: Invalid value: the memory request exceeds the memory limit`},
		{"more cpu than the limit", `{spec: {resources: {requests: {cpu: 2}, limits: {cpu: 500m}}}}`, `spec.resources: Invalid value: the cpu request exceeds the cpu limit`},

		{"probe that does two things", `{spec: {livenessProbe: {exec: {command: [a]}, grpc: {port: 1}}}}`, `spec.livenessProbe: Invalid value: exactly one of exec, httpGet, tcpSocket and grpc must be set`},
		{"probe that does nothing", `{spec: {readinessProbe: {periodSeconds: 1}}}`, `spec.readinessProbe: Invalid value: exactly one of exec, httpGet, tcpSocket and grpc must be set`},
		{"probe without a pause", `{spec: {livenessProbe: {grpc: {port: 1}, periodSeconds: 0}}}`, `spec.livenessProbe.periodSeconds in body should be greater than or equal to 1`},
		{"hook that does two things", `{spec: {lifecycle: {preStop: {exec: {command: [a]}, sleep: {seconds: 1}}}}}`, `spec.lifecycle.preStop: Invalid value: exactly one of exec and sleep must be set`},
		{"volume of two kinds", `{spec: {volumes: [{name: a, emptyDir: {}, hostPath: {path: /}}]}}`, `spec.volumes[0]: Invalid value: exactly one of configMap, secret, emptyDir`},
		{"volume of no kind", `{spec: {volumes: [{name: a}]}}`, `spec.volumes[0]: Invalid value: exactly one of configMap, secret, emptyDir`},
		{"mount of an unknown volume", `{spec: {volumeMounts: [{name: a, mountPath: /a}]}}`, `spec.volumeMounts: Invalid value: a volumeMount names a volume that is not in volumes`},
		{"privileged but unable to escalate", `{spec: {securityContext: {privileged: true, allowPrivilegeEscalation: false}}}`, `spec.securityContext: Invalid value: allowPrivilegeEscalation cannot be false`},
		{"local profile without a path", `{spec: {podSecurityContext: {seccompProfile: {type: Localhost}}}}`, `localhostProfile must be set if type is Localhost, and cannot be set otherwise`},
		{"unknown security profile", `{spec: {securityProfile: None}}`, `spec.securityProfile: Unsupported value: "None": supported values: "RuntimeDefault", "Restricted", "AsWritten"`},
		{"toleration of a value that must only exist", `{spec: {tolerations: [{key: a, operator: Exists, value: b}]}}`, `spec.tolerations[0]: Invalid value: value must be empty if operator is Exists`},

		{"rolling settings for Recreate", `{spec: {strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}}}`, `spec.strategy: Invalid value: rollingUpdate can only be set if type is RollingUpdate`},
		{"rollout that cannot begin", `{spec: {strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: "0%"}}}}`, `spec.strategy.rollingUpdate: Invalid value: maxUnavailable and maxSurge cannot both be 0`},
		{"percentage without its sign", `{spec: {strategy: {rollingUpdate: {maxUnavailable: "25"}}}}`, `spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "25": must be a number from 0 to 2147483647, or a percentage from 0% to 100%`},
		{"more than all", `{spec: {strategy: {rollingUpdate: {maxUnavailable: "101%"}}}}`, `must be a number from 0 to 2147483647, or a percentage from 0% to 100%`},
		{"autoscaling upside down", `{spec: {autoscaling: {minReplicas: 3, maxReplicas: 2}}}`, `spec.autoscaling: Invalid value: minReplicas must not be greater than maxReplicas`},
		{"autoscaling without an end", `{spec: {autoscaling: {}}}`, `spec.autoscaling.maxReplicas: Required value`},
		{"budget with both members", `{spec: {disruptionBudget: {minAvailable: 1, maxUnavailable: 1}}}`, `spec.disruptionBudget: Invalid value: exactly one of minAvailable and maxUnavailable must be set`},
		{"budget with neither", `{spec: {disruptionBudget: {}}}`, `spec.disruptionBudget: Invalid value: exactly one of minAvailable and maxUnavailable must be set`},
		{"ingress without a rule", `{spec: {ingress: {rules: []}}}`, `spec.ingress.rules in body should have at least 1 items`},
		{"ingress without a port", `{spec: {ports: null, ingress: {rules: [{host: a.example.com}]}}}`, `spec.ingress: Invalid value: ingress requires at least one entry in ports`},
		{"ingress to an unknown port", `{spec: {ingress: {rules: [{host: a.example.com, port: 81}]}}}`, `spec.ingress: Invalid value: an ingress rule names a port that is not in ports`},
		{"ingress path that does not start", `{spec: {ingress: {rules: [{path: a}]}}}`, `spec.ingress.rules[0].path in body should match '^/'`},
		{"peer of two kinds", `{spec: {networkPolicy: {from: [{podSelector: {}, ipBlock: {cidr: 192.0.2.0/24}}]}}}`, `spec.networkPolicy.from[0]: Invalid value: either ipBlock, or podSelector, namespaceSelector or both must be set`},
		{"range of nothing", `{spec: {networkPolicy: {from: [{ipBlock: {cidr: 192.0.2.0}}]}}}`, `spec.networkPolicy.from[0].ipBlock.cidr: Invalid value: "192.0.2.0": must be a CIDR block such as 192.0.2.0/24`},
	}
	refuses(t, "app_v1_appservice.yaml", table)
	t.Run("v1alpha1", func(t *testing.T) { refuses(t, "app_v1alpha1_appservice.yaml", table) })
}

func TestAppServiceCannotBecomeHeadless(t *testing.T) {
	const want = `spec.service: Invalid value: service.type cannot change from or to Headless; create another AppService`
	base := sample(t, "app_v1_appservice.yaml")
	plain := patched(t, base, `{spec: {ports: [{port: 80}]}}`)
	refusesChange(t, plain, []bad{{"becomes", `{spec: {service: {type: Headless}}}`, want}})
	headless := patched(t, plain, `{spec: {service: {type: Headless}}}`)
	refusesChange(t, headless, []bad{
		{"stops", `{spec: {service: {type: ClusterIP}}}`, want},
		{"stops by default", `{spec: {service: null}}`, want},
	})
}

func TestGoodAppServices(t *testing.T) {
	accepts(t, "app_v1_appservice.yaml", map[string]string{
		"no pods":                            `{spec: {size: 0}}`,
		"no ports":                           `{spec: {ports: null}}`,
		"no targetPort":                      `{spec: {ports: [{port: 80}]}}`,
		"named targetPort":                   `{spec: {ports: [{port: 80, targetPort: web-8080}]}}`,
		"the same port by two protocols":     `{spec: {ports: [{name: a, port: 53}, {name: b, port: 53, protocol: UDP}]}}`,
		"the same nodePort by two protocols": `{spec: {ports: [{name: a, port: 53, nodePort: 30053}, {name: b, port: 53, protocol: UDP, nodePort: 30053}]}}`,
		"nodePort of a load balancer":        `{spec: {service: {type: LoadBalancer, loadBalancerClass: example.com/lb}}}`,
		"request without a limit":            `{spec: {resources: {requests: {cpu: 2}, limits: {memory: 1Gi}}}}`,
		"request equal to the limit":         `{spec: {resources: {requests: {cpu: 500m}, limits: {cpu: "0.5"}}}}`,
		"further resources":                  `{spec: {resources: {limits: {example.com/gpu: 1}}}}`,
		"surge over 100%":                    `{spec: {strategy: {rollingUpdate: {maxSurge: "200%", maxUnavailable: 0}}}}`,
		"budget by percentage":               `{spec: {disruptionBudget: {minAvailable: "50%"}}}`,
		"ingress for any host":               `{spec: {ingress: {rules: [{}]}}}`,
		"ingress for a wildcard":             `{spec: {ingress: {rules: [{host: "*.example.com", port: 80}]}}}`,
		"no client may connect":              `{spec: {networkPolicy: {}}}`,
		"IPv6 range":                         `{spec: {networkPolicy: {from: [{ipBlock: {cidr: "2001:db8::/64"}}]}}}`,
		"longest name":                       `{metadata: {name: ` + strings.Repeat("a", 63) + `}}`,
	})
}

func TestAppServiceDefaults(t *testing.T) {
	defaults(t, "app_v1_appservice.yaml", `{spec: {size: null, ports: [{port: 80}], strategy: {}, autoscaling: {maxReplicas: 3}, ingress: {rules: [{}]}}}`, `
spec:
  image: nginx:1.7.9
  size: 1
  ports: [{port: 80, protocol: TCP}]
  securityProfile: RuntimeDefault
  progressDeadlineSeconds: 600
  revisionHistoryLimit: 10
  strategy: {type: RollingUpdate}
  autoscaling: {minReplicas: 1, maxReplicas: 3}
  ingress: {rules: [{host: "", path: /, pathType: Prefix}]}
`)
}
