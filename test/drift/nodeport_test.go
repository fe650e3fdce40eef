// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/testenv"
)

// A node port that the spec leaves open can be chosen by hand. It is not reported as restored, because the server would keep it.
// A port that is added with one goes, and so does a change of the target.
func TestANodePortThatTheSpecLeavesOpen(t *testing.T) {
	s := &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
	chosen, added := s.freeNodePort(), s.freeNodePort()
	s.manage()
	s.create(s.exposed("service: {type: NodePort}, ports: [{name: http, port: 80}]", 0))
	await := func(node int32) {
		t.Helper()
		testenv.Await(t, func() string {
			service := &corev1.Service{}
			if err := s.Get(t.Context(), types.NamespacedName{Namespace: s.namespace, Name: "shop"}, service); err != nil {
				return err.Error()
			}
			if ports := service.Spec.Ports; len(ports) != 1 || ports[0].NodePort != node || ports[0].TargetPort.IntValue() != 80 {
				return fmt.Sprintf("the ports are %+v: %s", ports, s.message())
			}
			return s.notReady()
		})
	}
	s.patchService(fmt.Sprintf(`{"spec": {"ports": [{"name": "http", "port": 80, "targetPort": 80, "nodePort": %d}]}}`, chosen))
	s.patchService(fmt.Sprintf(`{"spec": {"ports": [{"name": "http", "port": 80, "targetPort": 80, "nodePort": %d}, {"name": "more", "port": 81, "nodePort": %d}]}}`, chosen, added))
	await(chosen)
	s.patchService(fmt.Sprintf(`{"spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080, "nodePort": %d}]}}`, chosen))
	await(chosen)
	testenv.Await(t, func() string { return s.noEvent("DriftCorrected", "targetPort") })
	if found := s.events("DriftCorrected", `[port=80,protocol="TCP"].nodePort`); len(found) > 0 {
		t.Errorf("it is reported as restored: %s", found[0].Note)
	}
}
