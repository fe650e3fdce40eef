// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/testenv"
)

// lives are the specs that an owner has one after another. Each adds, changes and removes what others may have edited. All
// images have tags: the default of imagePullPolicy depends on that, and the server keeps the first one.
var lives = []struct {
	apiVersion, kind string
	specs            []string
}{
	{"app.example.com/v1", "AppService", []string{
		`{image: nginx:1, size: 1, envs: [{name: MODE, value: fast}, {name: LEVEL, value: info}], ports: [{name: http, port: 80}, {name: admin, port: 8080}], networkPolicy: {}}`,
		`{image: nginx:1, size: 1, envs: [{name: LEVEL, value: info}], ports: [{name: http, port: 8080}], podMetadata: {labels: {tier: web}, annotations: {note: mine}}}`,
		`{image: nginx:2, size: 2, ports: [{name: http, port: 8080}], ingress: {rules: [{host: a.example.com}]}, disruptionBudget: {maxUnavailable: 1}}`,
		`{image: nginx:2, ports: [{name: http, port: 8080}], autoscaling: {minReplicas: 2, maxReplicas: 4}, ingress: {rules: [{host: b.example.com}]}}`,
		`{image: nginx:2, size: 1, ports: [{name: http, port: 8080}], resources: {limits: {cpu: 500m, memory: 64Mi}}, securityProfile: AsWritten}`,
		`{image: nginx:2, size: 1}`,
	}},
	{"robot.llleon.io/v1", "Robot", []string{
		`{replicas: 1, template: {spec: {containers: [{name: arm, image: nginx:1, env: [{name: MODE, value: fast}]}]}}}`,
		`{replicas: 2, template: {spec: {containers: [{name: arm, image: nginx:1}, {name: leg, image: nginx:1}]}}}`,
		`{replicas: 1, deploymentName: other, template: {spec: {containers: [{name: leg, image: nginx:1}], nodeSelector: {kubernetes.io/os: linux}}}}`,
		`{replicas: 1, template: {spec: {containers: [{name: leg, image: nginx:2, resources: {limits: {cpu: 500m}}}]}}}`,
	}},
	{"collector.ip/v1", "Collector", []string{
		`{selector: {matchLabels: {none: such}}, output: {configMapName: one}}`,
		`{selector: {matchLabels: {none: such}}, output: {configMapName: two}}`,
		`{selector: {matchLabels: {none: such}}}`,
		`{selector: {matchLabels: {none: such}}, output: {configMapName: one}}`,
	}},
	{"kanggege.k8sio.com/v1", "KAPP", []string{
		`{components: [{name: a, resource: {apiVersion: robot.llleon.io/v1, kind: Robot, spec: {replicas: 1}}}, {name: b, dependsOn: [a], resource: {apiVersion: collector.ip/v1, kind: Collector, spec: {selector: {matchLabels: {none: such}}}}}]}`,
		`{components: [{name: a, resource: {apiVersion: robot.llleon.io/v1, kind: Robot, spec: {replicas: 2, securityProfile: AsWritten}}}]}`,
		`{components: [{name: a, resource: {apiVersion: robot.llleon.io/v1, kind: Robot, spec: {deploymentName: other}}}, {name: b, resource: {apiVersion: app.example.com/v1, kind: AppService, spec: {image: nginx:1, size: 1}}}]}`,
	}},
}

// Two owners live through the same specs. The children of one are edited all the time, and still become those of the other.
func TestTwins(t *testing.T) {
	config := fleettest.Config(t)
	start := startingSeed(t)
	for i, life := range lives {
		t.Run(life.kind, func(t *testing.T) {
			t.Parallel()
			var twins [2]*stage
			for i := range twins {
				twins[i] = &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
			}
			quiet, disturbed := twins[0], twins[1]
			fleettest.Run(t, config, manager.Options{Namespaces: []string{quiet.namespace, disturbed.namespace}})
			e := &editor{Rand: rand.New(rand.NewPCG(start, uint64(i)))}
			for number, spec := range life.specs {
				for _, s := range twins {
					s.specify(life.apiVersion, life.kind, spec)
				}
				testenv.Await(t, quiet.notReady)
				wanted := quiet.all()
				testenv.Await(t, func() string {
					if difference := cmp.Diff(wanted, disturbed.all()); difference != "" {
						return fmt.Sprintf("after spec %d the children differ (- quiet, + disturbed):\n%s", number, difference)
					}
					return disturbed.notReady()
				})
				// The last edits are under way when the spec changes.
				for range *edits / 2 {
					disturbed.vandalize(e)
				}
			}
			testenv.Await(t, func() string {
				if difference := cmp.Diff(quiet.all(), disturbed.all()); difference != "" {
					return "in the end the children differ (- quiet, + disturbed):\n" + difference
				}
				return disturbed.notReady()
			})
		})
	}
}

// specify creates the owner, or changes its spec.
func (s *stage) specify(apiVersion, kind, spec string) {
	s.Helper()
	manifest := fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: twin}, spec: %s}", apiVersion, kind, spec)
	if s.owner == nil {
		s.submit(manifest)
		return
	}
	wanted := map[string]any{}
	if err := yaml.Unmarshal([]byte(manifest), &wanted); err != nil {
		s.Fatal(err)
	}
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := s.Get(s.Context(), client.ObjectKeyFromObject(s.owner), s.owner); err != nil {
			return err
		}
		s.owner.Object["spec"] = wanted["spec"]
		return s.Update(s.Context(), s.owner)
	}); err != nil {
		s.Fatal(err)
	}
}

// all returns the essence of all children, by kind and name.
func (s *stage) all() map[string]any {
	s.Helper()
	found := map[string]any{}
	for _, child := range s.controlled() {
		essence := s.essence(child)
		found[child.GetKind()+" "+child.GetName()] = essence
	}
	return found
}

func (s *stage) controlled() (children []*unstructured.Unstructured) {
	s.Helper()
	for _, gvk := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		if err := s.List(s.Context(), list, client.InNamespace(s.namespace)); err != nil {
			s.Fatal(err)
		}
		for i := range list.Items {
			if metav1.IsControlledBy(&list.Items[i], s.owner) {
				children = append(children, &list.Items[i])
			}
		}
	}
	return children
}

// vandalize edits a child, and does not wait.
func (s *stage) vandalize(e *editor) {
	s.Helper()
	children := s.controlled()
	if len(children) == 0 {
		return
	}
	live := children[e.IntN(len(children))]
	edited, what := e.edit(live)
	how := []string{"update", "patch", "apply"}[e.IntN(3)]
	if err := s.send("editor", how, live, edited); err == nil {
		s.Logf("%s %s: %s by %s", live.GetKind(), live.GetName(), strings.TrimSpace(what), how)
	}
}
