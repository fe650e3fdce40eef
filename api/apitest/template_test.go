// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/cluster/clustertest"
)

// A template that our schema accepts must not be refused when a controller makes a Deployment of it. This one says
// everything that there is to say.
const everythingTemplate = `
metadata: {labels: {app: x}, annotations: {example.com/a: b}}
spec:
  initContainers:
  - {name: sidecar, image: a, restartPolicy: Always, startupProbe: {exec: {command: [a]}}, livenessProbe: {tcpSocket: {port: 1}}, lifecycle: {postStart: {exec: {command: [a]}}}}
  containers:
  - name: main
    image: a
    imagePullPolicy: Never
    command: [a]
    args: [b]
    workingDir: /a
    terminationMessagePolicy: FallbackToLogsOnError
    ports: [{name: web-80, containerPort: 80, hostPort: 80, protocol: TCP}, {containerPort: 80, protocol: UDP, hostPort: 80}, {containerPort: 81, hostPort: 81, protocol: SCTP}]
    env:
    - {name: A, value: a}
    - {name: B, valueFrom: {configMapKeyRef: {name: a, key: b, optional: true}}}
    - {name: C, valueFrom: {secretKeyRef: {name: a, key: b}}}
    - {name: D, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: E, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}
    envFrom: [{prefix: A_, configMapRef: {name: a}}, {secretRef: {name: a, optional: true}}]
    resources: {requests: {cpu: "1", memory: 1Mi, ephemeral-storage: 1Gi}, limits: {cpu: 1500m, memory: 1Gi}}
    livenessProbe: {httpGet: {path: /a, port: web-80, host: 127.0.0.1, scheme: HTTPS, httpHeaders: [{name: A, value: b}]}, initialDelaySeconds: 1, timeoutSeconds: 1, periodSeconds: 1, successThreshold: 1, failureThreshold: 1, terminationGracePeriodSeconds: 1}
    readinessProbe: {grpc: {port: 1, service: a}}
    startupProbe: {exec: {command: [a]}}
    lifecycle: {preStop: {sleep: {seconds: 1}}}
    securityContext: {allowPrivilegeEscalation: true, capabilities: {add: [NET_ADMIN], drop: [ALL]}, privileged: false, readOnlyRootFilesystem: true, runAsNonRoot: true, runAsUser: 1, runAsGroup: 1, seccompProfile: {type: Localhost, localhostProfile: a}, appArmorProfile: {type: RuntimeDefault}}
    volumeMounts:
    - {name: config, mountPath: /a, subPath: b, readOnly: true}
    - {name: empty, mountPath: /b, subPathExpr: $(A), mountPropagation: None}
  securityContext: {runAsNonRoot: true, runAsUser: 1, runAsGroup: 1, fsGroup: 1, fsGroupChangePolicy: OnRootMismatch, supplementalGroups: [2], seccompProfile: {type: RuntimeDefault}}
  volumes:
  - {name: config, configMap: {name: a, optional: true, items: [{key: a, path: b, mode: 292}], defaultMode: 420}}
  - {name: secret, secret: {secretName: a, optional: true, items: [{key: a, path: b}], defaultMode: 256}}
  - {name: empty, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
  - {name: claim, persistentVolumeClaim: {claimName: a, readOnly: true}}
  - {name: path, hostPath: {path: /a, type: DirectoryOrCreate}}
  - {name: csi, csi: {driver: a.example.com, readOnly: true, fsType: ext4, volumeAttributes: {a: b}, nodePublishSecretRef: {name: a}}}
  - {name: fields, downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.labels}, mode: 256}, {path: b, resourceFieldRef: {containerName: main, resource: limits.cpu}}], defaultMode: 256}}
  - name: all
    projected:
      defaultMode: 256
      sources:
      - {configMap: {name: a, optional: true, items: [{key: a, path: c}]}}
      - {secret: {name: a, items: [{key: a, path: d}]}}
      - {downwardAPI: {items: [{path: e, fieldRef: {fieldPath: metadata.name}}]}}
      - {serviceAccountToken: {audience: a, expirationSeconds: 600, path: f}}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gt, values: ["1"]}, {key: b, operator: DoesNotExist}]}]}
      preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: In, values: [b]}]}}]
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, labelSelector: {matchLabels: {a: b}}, namespaces: [a]}]
      preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, podAffinityTerm: {topologyKey: a, labelSelector: {}, namespaceSelector: {}}}]
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {a: b}}}]
  tolerations: [{operator: Exists}, {key: a, value: b, effect: NoExecute, tolerationSeconds: 1}]
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}, minDomains: 2, matchLabelKeys: [pod-template-hash], nodeAffinityPolicy: Ignore, nodeTaintsPolicy: Honor}]
  nodeSelector: {a: b}
  serviceAccountName: a
  automountServiceAccountToken: false
  imagePullSecrets: [{name: a}]
  terminationGracePeriodSeconds: 60
  priorityClassName: system-node-critical
  runtimeClassName: a
  schedulerName: a
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  hostAliases: [{ip: 127.0.0.1, hostnames: [a]}]
  enableServiceLinks: false
`

func TestTemplateMakesADeployment(t *testing.T) {
	s := realServer(t)
	template, err := parse(everythingTemplate)
	if err != nil {
		t.Fatal(err)
	}
	robot := sample(t, "robot_v1_robot.yaml")
	robot.Object["spec"].(map[string]any)["template"] = template.Object
	accepted, err := s.try(t, robot, metav1.NamespaceDefault)
	if err != nil {
		t.Fatalf("as a Robot: %v", err)
	}
	requireContains(t, "template", accepted.Object["spec"].(map[string]any)["template"], template.Object)

	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "Deployment",
		"metadata":   map[string]any{"name": "everything"},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "x"}},
			"template": accepted.Object["spec"].(map[string]any)["template"],
		},
	}}
	deployments := s.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(metav1.NamespaceDefault)
	made, err := deployments.Create(t.Context(), deployment, metav1.CreateOptions{
		DryRun:          []string{metav1.DryRunAll},
		FieldValidation: metav1.FieldValidationStrict,
	})
	if err != nil {
		t.Fatalf("as a Deployment: %v", err)
	}
	requireContains(t, "template", made.Object["spec"].(map[string]any)["template"], template.Object)
}

// With the keys of a list, two owners can each have their own items of it.
func TestListsCanBeShared(t *testing.T) {
	s := realServer(t)
	namespace := clustertest.Namespace(t)
	base := sample(t, "app_v1_appservice.yaml")
	for owner, variable := range map[string]string{"first": "A", "second": "B"} {
		object := patched(t, base, `{spec: {envs: [{name: `+variable+`, value: x}]}}`)
		raw, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.kind(t, object, namespace).Patch(t.Context(), object.GetName(), types.ApplyPatchType, raw, metav1.PatchOptions{FieldManager: owner}); err != nil {
			t.Fatal(err)
		}
	}
	object, err := s.kind(t, base, namespace).Get(t.Context(), base.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if envs, _, _ := unstructured.NestedSlice(object.Object, "spec", "envs"); len(envs) != 2 {
		t.Errorf("the variables of two owners became %v", envs)
	}
	if ports, _, _ := unstructured.NestedSlice(object.Object, "spec", "ports"); len(ports) != 1 {
		t.Errorf("the port that both have became %v", ports)
	}
}
