// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/cluster/clustertest"
)

const limitsFolder = "../../config/limits"

var (
	policies   = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	bindings   = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	roles      = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	grants     = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
)

const (
	appService = `apiVersion: app.example.com/v1, kind: AppService, metadata: {name: x}`
	alpha      = `apiVersion: app.example.com/v1alpha1, kind: AppService, metadata: {name: x}`
	robot      = `apiVersion: robot.llleon.io/v1, kind: Robot, metadata: {name: x}`
	podCluster = `apiVersion: kubegroup.generals.space/v1, kind: PodCluster, metadata: {name: x}`
	collector  = `apiVersion: collector.ip/v1, kind: Collector, metadata: {name: x}`
	adopting   = `apiVersion: collector.ip/v1, kind: Collector, metadata: {name: x, annotations: {opdock.dev/adopt: "true"}}`
)

// limited are specs that the policy refuses with its default settings, and what it says.
var limited = []struct{ object, want string }{
	{robot + `, spec: {template: {spec: {hostNetwork: true, containers: [{name: a}]}}}`, "hostNetwork is not allowed: the policy opdock-limits has hostAccess: Deny"},
	{appService + `, spec: {image: a, hostNetwork: true}`, "hostNetwork is not allowed"},
	{alpha + `, spec: {image: a, hostNetwork: true}`, "hostNetwork is not allowed"},
	{podCluster + `, spec: {template: {spec: {volumes: [{name: a, hostPath: {path: /}}], containers: [{name: a}]}}}`, "volumes with a hostPath are not allowed"},
	{appService + `, spec: {image: a, volumes: [{name: a, hostPath: {path: /}}]}`, "volumes with a hostPath are not allowed"},
	{robot + `, spec: {template: {spec: {containers: [{name: a}], initContainers: [{name: b, ports: [{containerPort: 1, hostPort: 1}]}]}}}`, "ports with a hostPort are not allowed"},
	{robot + `, spec: {template: {spec: {containers: [{name: a, securityContext: {privileged: true}}]}}}`, "securityContext.privileged is not allowed: the policy opdock-limits has privileged: Deny"},
	{appService + `, spec: {image: a, securityContext: {privileged: true}}`, "securityContext.privileged is not allowed"},
	{podCluster + `, spec: {template: {spec: {containers: [{name: a, securityContext: {capabilities: {add: [SYS_ADMIN]}}}]}}}`, "securityContext.capabilities.add is only allowed for NET_BIND_SERVICE"},
	{appService + `, spec: {image: a, podSecurityContext: {seccompProfile: {type: Unconfined}}}`, "of type Unconfined are not allowed"},
	{robot + `, spec: {template: {spec: {containers: [{name: a, securityContext: {appArmorProfile: {type: Unconfined}}}]}}}`, "of type Unconfined are not allowed"},
	{robot + `, spec: {template: {metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/a: unconfined}}, spec: {containers: [{name: a}]}}}`, "AppArmor annotations other than runtime/default and localhost/ are not allowed: the policy opdock-limits has privileged: Deny"},
	{appService + `, spec: {image: a, podMetadata: {annotations: {container.apparmor.security.beta.kubernetes.io/x: unconfined}}}`, "AppArmor annotations other than"},
	{alpha + `, spec: {image: a, podMetadata: {annotations: {container.apparmor.security.beta.kubernetes.io/x: unconfined}}}`, "AppArmor annotations other than"},
	{robot + `, spec: {template: {spec: {securityContext: {sysctls: [{name: a, value: b}]}, containers: [{name: a}]}}}`, "sysctls are not allowed"},
	{appService + `, spec: {image: a, ports: [{port: 80, nodePort: 30100}]}`, "nodePort, and service.type"},
	{appService + `, spec: {image: a, ports: [{port: 80}], service: {type: LoadBalancer}}`, "service.type NodePort and LoadBalancer, are not allowed"},
	{robot + `, spec: {template: {spec: {serviceAccountName: admin, containers: [{name: a}]}}}`, "serviceAccountName is not allowed: admin; the policy opdock-limits allows serviceAccounts: default, web-*"},
	{appService + `, spec: {image: a, serviceAccountName: admin}`, "serviceAccountName is not allowed: admin"},
	{robot + `, spec: {template: {spec: {containers: [{name: a, env: [{name: A, valueFrom: {secretKeyRef: {name: s1, key: k}}}]}]}}}`, "Secrets are not allowed: s1; the policy opdock-limits allows secrets: shop-*"},
	{appService + `, spec: {image: a, envs: [{name: A, valueFrom: {secretKeyRef: {name: s2, key: k}}}]}`, "Secrets are not allowed: s2"},
	{appService + `, spec: {image: a, envFrom: [{secretRef: {name: s3}}]}`, "Secrets are not allowed: s3"},
	{podCluster + `, spec: {template: {spec: {containers: [{name: a}], volumes: [{name: a, secret: {secretName: s4}}]}}}`, "Secrets are not allowed: s4"},
	{podCluster + `, spec: {template: {spec: {containers: [{name: a}], volumes: [{name: a, projected: {sources: [{secret: {name: s5}}]}}]}}}`, "Secrets are not allowed: s5"},
	{podCluster + `, spec: {template: {spec: {containers: [{name: a}], volumes: [{name: a, csi: {driver: d, nodePublishSecretRef: {name: s6}}}]}}}`, "Secrets are not allowed: s6"},
	{robot + `, spec: {template: {spec: {imagePullSecrets: [{name: s7}], containers: [{name: a}]}}}`, "Secrets are not allowed: s7"},
	{appService + `, spec: {image: a, ports: [{port: 80}], ingress: {rules: [{}], tls: [{secretName: s8}]}}`, "Secrets are not allowed: s8"},
	{appService + `, spec: {image: a, ports: [{port: 80}], ingress: {rules: [{}], annotations: {example.com/snippet: a}}}`, "ingress.annotations and service.annotations are not allowed: example.com/snippet"},
	{appService + `, spec: {image: a, ports: [{port: 80}], service: {annotations: {example.com/lb: a}}}`, "ingress.annotations and service.annotations are not allowed: example.com/lb"},
	{adopting + `, spec: {selector: {}, output: {configMapName: app-config}}`, "the annotation opdock.dev/adopt is not allowed: the policy opdock-limits has adoption: Deny"},
}

// unlimited are specs that it does not refuse.
var unlimited = []string{
	appService + `, spec: {image: a}`, alpha + `, spec: {image: a}`, robot + `, spec: {}`, podCluster + `, spec: {}`, collector + `, spec: {selector: {}}`,
	appService + `, spec: {image: a, serviceAccountName: web-1, envFrom: [{secretRef: {name: shop-a}}], ports: [{port: 80}], ingress: {rules: [{}], annotations: {allowed.example.com/a: b}}}`,
	podCluster + `, spec: {template: {metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/a: localhost/a, note: unconfined}}, spec: {containers: [{name: a}]}}}`,
	robot + `, spec: {template: {spec: {serviceAccountName: default, containers: [{name: a, ports: [{containerPort: 80}], securityContext: {privileged: false, capabilities: {add: [NET_BIND_SERVICE]}}, env: [{name: A, value: b}]}], volumes: [{name: a, emptyDir: {}}]}}}`,
}

func TestLimits(t *testing.T) {
	s := realServer(t)
	namespace := clustertest.Namespace(t)
	const existing = `apiVersion: robot.llleon.io/v1, kind: Robot, metadata: {name: existing, finalizers: [example.com/wait]}, spec: {template: {spec: {hostNetwork: true, containers: [{name: a}]}}}`
	old := s.create(t, existing, namespace)
	s.limit(t, namespace, map[string]any{"secrets": "shop-*", "serviceAccounts": "default, web-*", "annotations": "allowed.example.com/*"})

	for _, test := range limited {
		for name, object := range map[string]string{"by itself": `{` + test.object + `}`, "in a KAPP": inKAPP(test.object)} {
			t.Run(name+" "+test.object, func(t *testing.T) {
				_, err := s.tryIn(t, object, namespace)
				requireRefusal(t, err, test.want)
				requireRefusal(t, err, "opdock-limits")
				if _, err := s.tryIn(t, object, metav1.NamespaceDefault); err != nil {
					t.Errorf("elsewhere: %v", err)
				}
			})
		}
	}
	for _, object := range unlimited {
		for _, manifest := range []string{`{` + object + `}`, inKAPP(object)} {
			if _, err := s.tryIn(t, manifest, namespace); err != nil {
				t.Errorf("%s: %v", object, err)
			}
		}
	}

	// The API server gives up on a policy that costs too much.
	if _, err := s.tryIn(t, largeKAPP(), namespace); err != nil {
		t.Errorf("a large KAPP: %v", err)
	}

	// What exists already.
	robots := s.kind(t, old, namespace)
	change := func(patch string) error {
		fresh, err := robots.Get(t.Context(), old.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = robots.Update(t.Context(), patched(t, fresh, patch), metav1.UpdateOptions{})
		return err
	}
	if err := change(`{metadata: {labels: {a: b}}}`); err != nil {
		t.Errorf("it cannot be labelled: %v", err)
	}
	requireRefusal(t, change(`{spec: {replicas: 3}}`), "hostNetwork is not allowed")
	if err := robots.Delete(t.Context(), old.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := change(`{metadata: {finalizers: null}}`); err != nil {
		t.Errorf("its finalizer cannot be removed: %v", err)
	}
}

// The annotation that adopts has an effect without a change of the spec.
func TestLimitsOfAdoption(t *testing.T) {
	s := realServer(t)
	namespace := clustertest.Namespace(t)
	const spec = `, spec: {selector: {}, output: {configMapName: app-config}}`
	before := s.create(t, strings.Replace(adopting+spec, "name: x", "name: before", 1), namespace)
	s.limit(t, namespace, nil)
	after := s.create(t, strings.Replace(collector+spec, "name: x", "name: after", 1), namespace)
	annotated := func(object *unstructured.Unstructured, annotations string) error {
		collectors := s.kind(t, object, namespace)
		fresh, err := collectors.Get(t.Context(), object.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = collectors.Update(t.Context(), patched(t, fresh, `{metadata: {annotations: `+annotations+`}}`), metav1.UpdateOptions{})
		return err
	}

	const want = "the annotation opdock.dev/adopt is not allowed: the policy opdock-limits has adoption: Deny"
	requireRefusal(t, annotated(after, `{opdock.dev/adopt: "true"}`), want)
	_, err := s.tryIn(t, strings.Replace(aloneInKAPP(robot+`, spec: {}`), "metadata: {name: x}", `metadata: {name: x, annotations: {opdock.dev/adopt: "true"}}`, 1), namespace)
	requireRefusal(t, err, want)
	for object, annotations := range map[*unstructured.Unstructured][]string{
		after:  {`{a: b}`, `{opdock.dev/adopt: "false"}`},
		before: {`{a: b}`, `{opdock.dev/adopt: null}`},
	} {
		for _, change := range annotations {
			if err := annotated(object, change); err != nil {
				t.Errorf("%s: %s: %v", object.GetName(), change, err)
			}
		}
	}
	requireRefusal(t, annotated(before, `{opdock.dev/adopt: "true"}`), want)
}

func TestLimitsThatAllowAdoption(t *testing.T) {
	s := realServer(t)
	namespace := clustertest.Namespace(t)
	s.limit(t, namespace, map[string]any{"adoption": "Allow"})
	for _, object := range []string{`{` + adopting + `, spec: {selector: {}}}`, aloneInKAPP(adopting + `, spec: {selector: {}}`)} {
		if _, err := s.tryIn(t, object, namespace); err != nil {
			t.Errorf("%s: %v", object, err)
		}
	}
}

// The rights of the object's author count.
func TestLimitsOfRights(t *testing.T) {
	s := realServer(t)
	namespace := clustertest.Namespace(t)
	s.limit(t, namespace, nil)
	config := rest.CopyConfig(s.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "edith"}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	edith := server{Interface: client, config: config}
	s.createIn(t, roles, namespace, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: some}, rules: [
		{apiGroups: [kanggege.k8sio.com], resources: [kapps], verbs: [create]}, {apiGroups: [collector.ip], resources: [collectors], verbs: [create]}]}`)
	s.createIn(t, grants, namespace, `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: some},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: some}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: edith}]}`)
	// The authorizer may take a moment to see the role.
	waitUntil(t, func() bool {
		_, err := edith.tryIn(t, aloneInKAPP(robot+`, spec: {}`), namespace)
		return err != nil && !strings.Contains(err.Error(), "cannot create resource")
	})
	for object, want := range map[string]string{
		aloneInKAPP(robot + `, spec: {}`):                 "a component of kind Robot is not allowed without permission to create Robots: the policy opdock-limits has withoutRights: Deny",
		aloneInKAPP(appService + `, spec: {image: a}`):    "a component of kind AppService is not allowed without permission to create AppServices",
		aloneInKAPP(podCluster + `, spec: {}`):            "a component of kind PodCluster is not allowed without permission to create PodClusters",
		aloneInKAPP(collector + `, spec: {selector: {}}`): "a Collector is not allowed without permission to list pods",
		`{` + collector + `, spec: {selector: {}}}`:       "a Collector is not allowed without permission to list pods: the policy opdock-limits has withoutRights: Deny",
	} {
		_, err := edith.tryIn(t, object, namespace)
		requireRefusal(t, err, want)
		if _, err := s.tryIn(t, object, namespace); err != nil {
			t.Errorf("who has the rights cannot create %s: %v", object, err)
		}
	}
	s.createIn(t, roles, namespace, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: more}, rules: [
		{apiGroups: [robot.llleon.io], resources: [robots], verbs: [create]}, {apiGroups: [""], resources: [pods], verbs: [list]}]}`)
	s.createIn(t, grants, namespace, `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: more},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: more}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: edith}]}`)
	for _, object := range []string{aloneInKAPP(robot + `, spec: {}`), aloneInKAPP(collector + `, spec: {selector: {}}`), `{` + collector + `, spec: {selector: {}}}`} {
		waitUntil(t, func() bool {
			_, err := edith.tryIn(t, object, namespace)
			return err == nil
		})
	}
}

// aloneInKAPP makes the only component of an object.
func aloneInKAPP(object string) string {
	return `{apiVersion: kanggege.k8sio.com/v1, kind: KAPP, metadata: {name: x}, spec: {components: [{name: x, resource: {` + object + `}}]}}`
}

// inKAPP makes one of two components of an object.
func inKAPP(object string) string {
	return `{apiVersion: kanggege.k8sio.com/v1, kind: KAPP, metadata: {name: x}, spec: {components: [
		{name: other, resource: {` + robot + `, spec: {}}}, {name: x, resource: {` + strings.Replace(object, "name: x", "name: other", 1) + `}}]}}`
}

// largeKAPP has as many components as there may be, each with three containers that have 20 variables from Secrets.
func largeKAPP() string {
	variables := make([]string, 20)
	for i := range variables {
		variables[i] = fmt.Sprintf("{name: A%d, valueFrom: {secretKeyRef: {name: shop-%d, key: k}}}", i, i)
	}
	var containers []string
	for _, name := range []string{"a", "b", "c"} {
		containers = append(containers, `{name: `+name+`, env: [`+strings.Join(variables, ", ")+`]}`)
	}
	list := make([]string, 30)
	for i := range list {
		list[i] = fmt.Sprintf("{name: c%d, resource: {apiVersion: robot.llleon.io/v1, kind: Robot, spec: {template: {spec: {containers: [%s]}}}}}", i, strings.Join(containers, ", "))
	}
	return `{apiVersion: kanggege.k8sio.com/v1, kind: KAPP, metadata: {name: x}, spec: {components: [` + strings.Join(list, ", ") + `]}}`
}

func (s server) tryIn(t *testing.T, manifest, namespace string) (*unstructured.Unstructured, error) {
	t.Helper()
	object, err := parse(manifest)
	if err != nil {
		t.Fatalf("%s: %v", manifest, err)
	}
	return s.try(t, object, namespace)
}

func (s server) create(t *testing.T, manifest, namespace string) *unstructured.Unstructured {
	t.Helper()
	object, err := parse(`{` + manifest + `}`)
	if err != nil {
		t.Fatal(err)
	}
	created, err := s.kind(t, object, namespace).Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func (s server) createIn(t *testing.T, resource schema.GroupVersionResource, namespace, manifest string) {
	t.Helper()
	object, err := parse(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resource(resource).Namespace(namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// limit puts the policy into force in one namespace, with other settings if there are any, and takes it back at the end.
func (s server) limit(t *testing.T, namespace string, settings map[string]any) {
	t.Helper()
	s.keepPolicy(t)
	parameters := mustRead(t, limitsFolder+"/settings.yaml")[0]
	parameters.SetNamespace(namespace)
	merge(parameters.Object, map[string]any{"data": settings})
	s.createUntilEnd(t, configMaps, namespace, parameters)
	s.createUntilEnd(t, bindings, "", limitsBinding(t, "opdock-limits", namespace))
	// The API server takes a moment to compile it.
	waitUntil(t, func() bool {
		_, err := s.tryIn(t, `{`+limited[0].object+`}`, namespace)
		return err != nil && strings.Contains(err.Error(), limited[0].want)
	})
}

// keepPolicy creates the policy, with a binding for a namespace that does not exist, and leaves both until the control
// plane ends. An API server (1.36) stops to watch ConfigMaps when no binding refers to one, and does not start again.
func (s server) keepPolicy(t *testing.T) {
	t.Helper()
	for resource, object := range map[schema.GroupVersionResource]*unstructured.Unstructured{
		policies: mustRead(t, limitsFolder+"/policy.yaml")[0],
		bindings: limitsBinding(t, "nowhere", "nowhere"),
	} {
		_, err := s.Resource(resource).Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("%s: %v", object.GetName(), err)
		}
	}
}

// limitsBinding returns a binding of the policy for one namespace.
func limitsBinding(t *testing.T, name, namespace string) *unstructured.Unstructured {
	t.Helper()
	binding := mustRead(t, limitsFolder+"/binding.yaml")[0]
	binding.SetName(name)
	merge(binding.Object, map[string]any{"spec": map[string]any{
		"paramRef": map[string]any{"namespace": namespace},
		"matchResources": map[string]any{"namespaceSelector": map[string]any{
			"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace},
		}},
	}})
	return binding
}

// createUntilEnd creates an object that is deleted after the test.
func (s server) createUntilEnd(t *testing.T, resource schema.GroupVersionResource, namespace string, object *unstructured.Unstructured) {
	t.Helper()
	client := s.Resource(resource).Namespace(namespace)
	if _, err := client.Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
		t.Fatalf("%s: %v", object.GetName(), err)
	}
	t.Cleanup(func() {
		if err := client.Delete(context.Background(), object.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func waitUntil(t *testing.T, done func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, establishing, true, func(context.Context) (bool, error) { return done(), nil }); err != nil {
		t.Fatal(err)
	}
}
