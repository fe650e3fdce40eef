// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/opdock/opdock/cluster"
)

// kro is the controller that the fleet is compared with, and the objects to install for it.
type kro struct {
	program, version string
	crds             string // the directory of its CRDs
	app              application
}

// The racers that join those of the fleet.
const (
	kroDefault = "kro, default"
	kroTuned   = "kro, tuned"
)

// kroArguments has the arguments of kro's own chart. The tuned racer adds as many workers as a user could reasonably
// configure, and removes the rate limits.
var kroArguments = map[string][]string{
	kroDefault: {"--zap-log-level=info", "--zap-encoder=console", "--zap-devel=false"},
	kroTuned: {
		"--zap-log-level=info", "--zap-encoder=console", "--zap-devel=false", "--dynamic-controller-concurrent-reconciles=16",
		"--dynamic-controller-rate-limiter-rate-limit=1000000", "--dynamic-controller-rate-limiter-burst-limit=1000000", "--client-qps=-1",
	},
}

// kroSection measures the fleet and kro with the same application.
func kroSection(ctx context.Context, e environment) (string, error) {
	began := time.Now()
	program := filepath.Join(e.work, "manager")
	if err := buildManager(ctx, program); err != nil {
		return "", err
	}
	k, err := buildKro(ctx, e)
	if err != nil {
		return "", err
	}
	if k.app, err = recordApplication(ctx, e, program); err != nil {
		return "", err
	}
	var races []results
	for _, size := range e.kroSizes {
		one, err := race(ctx, e, size, rounds(e.fleetRuns, size, slices.Max(e.kroSizes)), []racer{
			{floorRacer, raceFloor(k.app)}, {fleetRacer, raceFleet(e, program)}, {kroDefault, k.race(e, kroDefault)}, {kroTuned, k.race(e, kroTuned)},
		})
		if err != nil {
			return "", err
		}
		races = append(races, one)
	}
	return sectionPage("kro", "The fleet and kro", time.Since(began), func(p printer) {
		p("The same application, with one Deployment and one Service, runs as an AppService and as an instance of a ResourceGraphDefinition")
		p("of kro %s, which is built from its Go module. Both write the same fields and are ready when the Deployment is available. \"kro,", k.version)
		p("default\" runs with the arguments of its chart; \"kro, tuned\" has 16 workers and no rate limits. The fleet runs as")
		p("installed. Neither elects a leader. As above, the contenders took turns, and each run has a new cluster. Each contender has")
		p("handled one application before the clock starts. CPU times and writes count until everything is at rest. %s\n", lateness(races))
		writeRaces(p, races, fleetRacer)
	}, kroGoals(races)), nil
}

func kroGoals(races []results) (goals []goal) {
	for _, r := range races {
		for _, one := range []struct {
			racer string
			goal  float64
		}{{kroDefault, 3}, {kroTuned, 1.5}} {
			ahead := r.against(one.racer, fleetRacer)
			goals = append(goals, goal{fmt.Sprintf("%d applications until Ready, %s against the fleet", r.size, one.racer), fmt.Sprintf("at least %.1f × as long", one.goal), times(ahead), ahead >= one.goal})
		}
		least := min(r.of(kroDefault, residentOf), r.of(kroTuned, residentOf))
		memory := r.of(fleetRacer, residentOf)
		goals = append(goals, goal{fmt.Sprintf("memory of the fleet's manager with %d applications, against kro", r.size), fmt.Sprintf("at most %.0f MB", least), fmt.Sprintf("%.0f MB", memory), memory <= least})
	}
	return goals
}

// kroModule is a separate module that pins kro, so its dependencies do not affect ours.
const kroModule, kroPath = "bench/kro", "github.com/kubernetes-sigs/kro"

// buildKro builds kro from its module, which also contains the CRDs.
func buildKro(ctx context.Context, e environment) (kro, error) {
	say("Building kro")
	k := kro{program: filepath.Join(e.work, "kro")}
	build := exec.CommandContext(ctx, "go", "build", "-C", kroModule, "-ldflags=-s -w", "-o", k.program, kroPath+"/cmd/controller")
	if out, err := build.CombinedOutput(); err != nil {
		return k, fmt.Errorf("building kro: %w\n%s", err, out)
	}
	out, err := exec.CommandContext(ctx, "go", "list", "-C", kroModule, "-m", "-f", "{{.Version}}\n{{.Dir}}", kroPath).Output()
	if err != nil {
		return k, fmt.Errorf("finding the module directory of kro: %w", err)
	}
	version, dir, found := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if !found {
		return k, fmt.Errorf("kro is not in the module cache: %q", out)
	}
	k.version, k.crds = version, filepath.Join(dir, "helm", "crds")
	return k, nil
}

// kroKind is the kind that kro serves for the definition.
var kroKind = schema.GroupVersionKind{Group: "kro.run", Version: "v1alpha1", Kind: "Application"}

func (k kro) race(e environment, name string) func(context.Context, *raced, *cluster.Cluster, int) error {
	return func(ctx context.Context, r *raced, c *cluster.Cluster, size int) error {
		if _, err := envtest.InstallCRDs(c.Config(), envtest.CRDInstallOptions{Paths: []string{k.crds}, ErrorIfPathMissing: true}); err != nil {
			return fmt.Errorf("installing the CRDs of kro: %w", err)
		}
		kroClient, err := client.NewWithWatch(unlimited(c.Config()), client.Options{})
		if err != nil {
			return err
		}
		f := &fleet{WithWatch: kroClient, program: k.program, kubeconfig: c.Kubeconfig(), namespace: metav1.NamespaceDefault, foreign: true, arguments: kroArguments[name]}
		defined := false
		return r.controlled(ctx, e, c, f, size, func(ctx context.Context, size int, name func(int) string) (time.Duration, error) {
			if !defined { // for the warm-up, which comes first
				defined = true
				if err := k.define(ctx, kroClient); err != nil {
					return 0, err
				}
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kroKind.GroupVersion().WithKind(kroKind.Kind + "List"))
			return createAndAwait(ctx, kroClient, f.namespace, size, list, func(i int) client.Object { return kroApplication(name(i)) }, nil, isReadyInstance)
		})
	}
}

func kroApplication(name string) client.Object {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1), "image": "web", "port": int64(80)}}}
	object.SetGroupVersionKind(kroKind)
	object.SetName(name)
	return object
}

// define creates the definition, and returns when kro serves the kind and the cluster is idle.
func (k kro) define(ctx context.Context, c client.Client) error {
	definition, err := k.definition()
	if err != nil {
		return err
	}
	if err := c.Create(ctx, definition); err != nil {
		return err
	}
	if err := eventually(ctx, "kro does not serve the definition", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(definition), definition); err != nil {
			return err
		}
		if state, _, _ := unstructured.NestedString(definition.Object, "status", "state"); state != "Active" {
			status, err := json.Marshal(definition.Object["status"])
			return errors.Join(fmt.Errorf("its status is %s", status), err)
		}
		return nil
	}); err != nil {
		return err
	}
	return pause(ctx, published)
}

// definition builds a ResourceGraphDefinition from the recorded application.
func (k kro) definition() (*unstructured.Unstructured, error) {
	var deployment, service map[string]any
	for from, to := range map[*[]byte]*map[string]any{&k.app.deployment: &deployment, &k.app.service: &service} {
		if err := json.Unmarshal([]byte(strings.ReplaceAll(string(*from), recorded, "${schema.metadata.name}")), to); err != nil {
			return nil, err
		}
	}
	const size, image, port = "${schema.spec.size}", "${schema.spec.image}", "${schema.spec.port}"
	container := at(deployment, "spec", "template", "spec", "containers", 0)
	at(deployment, "spec")["replicas"], container["image"] = size, image
	at(container, "ports", 0)["containerPort"] = port
	at(service, "spec", "ports", 0)["port"], at(service, "spec", "ports", 0)["targetPort"] = port, port
	for _, child := range []map[string]any{deployment, service} {
		at(child, "metadata")["namespace"] = "${schema.metadata.namespace}"
	}
	definition := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"schema": map[string]any{
			"apiVersion": kroKind.Version, "kind": kroKind.Kind,
			"spec": map[string]any{"size": "integer | default=1", "image": "string", "port": "integer"},
		},
		"resources": []any{
			map[string]any{
				"id": "deployment", "template": deployment,
				"readyWhen": []any{"${deployment.spec.replicas == deployment.status.availableReplicas}"},
			},
			map[string]any{"id": "service", "template": service},
		},
	}}}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "kro.run", Version: "v1alpha1", Kind: "ResourceGraphDefinition"})
	definition.SetName("applications")
	return definition, nil
}

// at returns the object at a path of field names and list indexes, or an empty object if there is none.
func at(object map[string]any, path ...any) map[string]any {
	var found any = object
	for _, step := range path {
		switch step := step.(type) {
		case string:
			below, _ := found.(map[string]any)
			found = below[step]
		case int:
			items, _ := found.([]any)
			if step >= len(items) {
				return map[string]any{}
			}
			found = items[step]
		}
	}
	below, ok := found.(map[string]any)
	if !ok {
		return map[string]any{}
	}
	return below
}

func isReadyInstance(object runtime.Object) bool {
	instance, ok := object.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(instance.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(one any) bool {
		condition, ok := one.(map[string]any)
		return ok && condition["type"] == "Ready" && condition["status"] == "True"
	})
}
