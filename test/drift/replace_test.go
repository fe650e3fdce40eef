// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/testenv"
)

// A Service that no change can bring back is replaced. It is edited while no manager runs, because such edits take two steps.
func TestServicesThatCannotBeChangedBack(t *testing.T) {
	const leave = `{"spec": {"type": "ExternalName", "externalName": "elsewhere.example.com", "clusterIP": "", "clusterIPs": null, "ports": [{"name": "http", "port": 80, "nodePort": null}]}}`
	for _, test := range []struct{ name, spec, back string }{
		{"made headless", "ports: [{name: http, port: 80}]", `{"spec": {"type": "ClusterIP", "externalName": null, "clusterIP": "None"}}`},
		{"with a node port, made headless", "ports: [{name: http, port: 80, nodePort: PORT}]", `{"spec": {"type": "ClusterIP", "externalName": null, "clusterIP": "None"}}`},
		{"no longer headless", "ports: [{name: http, port: 80}], service: {type: Headless}", `{"spec": {"type": "ClusterIP", "externalName": null}}`},
		{
			"of another class, with its node port", "ports: [{name: http, port: 80, nodePort: PORT}], service: {type: LoadBalancer, loadBalancerClass: example.com/a}",
			`{"spec": {"type": "LoadBalancer", "externalName": null, "loadBalancerClass": "example.com/b", "ports": [{"name": "http", "port": 80, "nodePort": PORT}]}}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
			port := s.freeNodePort()
			stop := s.manage()
			s.create(s.exposed(test.spec, port))
			s.learn([]string{"Service"})
			wanted := s.children[0]
			stop()
			s.patchService(leave)
			s.patchService(strings.ReplaceAll(test.back, "PORT", strconv.Itoa(int(port))))
			s.manage()
			testenv.Await(t, func() string {
				fresh := wanted.DeepCopy()
				if err := s.Get(t.Context(), client.ObjectKeyFromObject(fresh), fresh); err != nil {
					return err.Error()
				}
				before, after := fmt.Sprint(s.essence(wanted)), fmt.Sprint(s.essence(fresh))
				if isHeadless(wanted) != isHeadless(fresh) || before != after {
					return fmt.Sprintf("it is\n%s\nand not\n%s\n%s", after, before, s.message())
				}
				return s.notReady()
			})
		})
	}
}

// A node port that another Service has taken keeps the Service from being recreated, until it is free again.
func TestANodePortThatIsTaken(t *testing.T) {
	s := &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
	port := s.freeNodePort()
	stop := s.manage()
	s.create(s.exposed("ports: [{name: http, port: 80, nodePort: PORT}]", port))
	stop()
	s.patchService(`{"spec": {"type": "ExternalName", "externalName": "elsewhere.example.com", "clusterIP": "", "clusterIPs": null, "ports": [{"name": "http", "port": 80, "nodePort": null}]}}`)
	s.patchService(`{"spec": {"type": "ClusterIP", "externalName": null, "clusterIP": "None"}}`)
	taker := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "taker"}}
	taker.Spec.Type, taker.Spec.Ports = corev1.ServiceTypeNodePort, []corev1.ServicePort{{Port: 80, NodePort: port}}
	if err := s.Create(t.Context(), taker); err != nil {
		t.Fatal(err)
	}
	s.manage()
	testenv.Await(t, func() string {
		if message := s.message(); s.reason() != "Invalid" || !strings.Contains(message, "provided port is already allocated") || !strings.Contains(message, strconv.Itoa(int(port))) {
			return "the reason is " + s.reason() + ": " + message
		}
		return ""
	})
	if err := s.Delete(t.Context(), taker); err != nil {
		t.Fatal(err)
	}
	testenv.Await(t, func() string {
		service := &corev1.Service{}
		if err := s.Get(t.Context(), types.NamespacedName{Namespace: s.namespace, Name: "shop"}, service); err != nil {
			return err.Error()
		}
		if service.Spec.Type != corev1.ServiceTypeNodePort || service.Spec.Ports[0].NodePort != port {
			return fmt.Sprintf("it is %s with ports %+v", service.Spec.Type, service.Spec.Ports)
		}
		return s.notReady()
	})
}

func (s *stage) manage() (stop func()) {
	s.Helper()
	return fleettest.Run(s, fleettest.Config(s), manager.Options{Namespaces: []string{s.namespace}})
}

func (s *stage) exposed(spec string, port int32) string {
	return "{apiVersion: app.example.com/v1, kind: AppService, metadata: {name: shop}, spec: {image: nginx, size: 1, " +
		strings.ReplaceAll(spec, "PORT", strconv.Itoa(int(port))) + "}}"
}

// nodePorts counts the node ports that tests have chosen. The server chooses the first 86 itself only when all others are taken.
var nodePorts atomic.Int32

// freeNodePort returns a node port that no other test gets.
func (s *stage) freeNodePort() int32 {
	s.Helper()
	next := nodePorts.Add(1) - 1
	if next >= 86 {
		s.Fatal("too many node ports were chosen")
	}
	return 30000 + next
}

func (s *stage) patchService(patch string) {
	s.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "shop"}}
	if err := s.Patch(s.Context(), service, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("editor")); err != nil {
		s.Fatalf("%s: %v", patch, err)
	}
}

func isHeadless(service *unstructured.Unstructured) bool {
	address, _, _ := unstructured.NestedString(service.Object, "spec", "clusterIP")
	return address == corev1.ClusterIPNone
}

// A child that lost the fleet's label is not in the manager's caches. It is still deleted when the spec no longer asks for it.
func TestAChildWithoutItsLabelIsDeleted(t *testing.T) {
	for _, test := range []struct{ kind, manifest, child, change string }{
		{"AppService", owners[0].manifest, "Service", `{"ports": null, "ingress": null}`},
		{"AppService, another child", owners[0].manifest, "NetworkPolicy", `{"networkPolicy": null}`},
		{"Robot", owners[2].manifest, "Deployment", `{"deploymentName": "other"}`},
		{"Collector", owners[3].manifest, "ConfigMap", `{"output": {"configMapName": "other"}}`},
	} {
		t.Run(test.kind, func(t *testing.T) {
			t.Parallel()
			s := &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
			s.manage()
			s.create(test.manifest)
			s.learn([]string{test.child})
			patch := func(object client.Object, patch string) {
				t.Helper()
				if err := s.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
					t.Fatal(err)
				}
			}
			patch(s.owner.DeepCopy(), `{"spec": {"suspend": true}}`)
			testenv.Await(t, func() string {
				if reason := s.reason(); reason != "Suspended" {
					return "the reason is " + reason
				}
				return ""
			})
			patch(s.children[0].DeepCopy(), `{"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}}`)
			patch(s.owner.DeepCopy(), `{"spec": `+test.change+`}`)
			patch(s.owner.DeepCopy(), `{"spec": {"suspend": false}}`)
			fleettest.AwaitGone(t, s.Client, s.children[0])
			testenv.Await(t, s.notReady)
		})
	}
}
