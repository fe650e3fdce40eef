// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kapp_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	kappv1 "github.com/opdock/opdock/api/kapp/v1"
	robotv1 "github.com/opdock/opdock/api/robot/v1"
	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/testenv"
)

const worker = "{apiVersion: robot.llleon.io/v1, kind: Robot, spec: {deploymentName: worker}}"

func TestAMissingKindIsNoCrash(t *testing.T) {
	c := fleettest.Client(t)
	robots := kindsNamed("Robot")
	uninstall := func() {
		t.Helper()
		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		crd.SetName(robots[0].CRD())
		if err := c.Delete(t.Context(), crd); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		fleettest.AwaitGone(t, c, crd)
	}
	install := func() {
		t.Helper()
		// Not the test's context, which has ended when this is called to clean up.
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
		defer cancel()
		if err := controller.Install(ctx, fleettest.Config(t), robots); err != nil {
			t.Error(err)
		}
	}
	uninstall()
	t.Cleanup(install)

	s := newStage(t)
	kapp := s.store(component("worker", worker), app("web"))
	s.report("store-web", isReady)
	s.awaitRows(kapp, "worker:Stalled", "web:Ready")
	s.awaitStalled(kapp, "KindNotInstalled", "worker: the kind Robot is not installed")
	install()
	robot := &robotv1.Robot{}
	robot.Namespace, robot.Name = s.namespace, "store-worker"
	fleettest.Await(t, c, robot, exists)
	s.awaitRows(kapp, "worker:Progressing", "web:Ready")

	// It is deleted with all its objects, and no watch reports when it is back.
	uninstall()
	s.awaitStalled(kapp, "KindNotInstalled", "Robot")
	install()
	fleettest.Await(t, c, robot, exists)
	if err := c.Delete(t.Context(), kapp); err != nil {
		t.Fatal(err)
	}
	fleettest.AwaitGone(t, c, kapp)
	fleettest.AwaitGone(t, c, robot)
}

// TestWhatSlippedPastTheSchema has objects as an older schema, without today's rules, would have let in.
func TestWhatSlippedPastTheSchema(t *testing.T) {
	long := strings.Repeat("x", 70)
	s := newStage(t)
	for _, test := range []struct {
		name           string
		components     []string
		reason, detail string
	}{
		{"twice", []string{app("web"), app("web")}, "InvalidComponent", `two components have the name "web"`},
		{"unknown", []string{app("web", "db")}, "InvalidDependency", `dependsOn names "db", which is not a component`},
		{"cycle", []string{app("web", "db"), app("db", "web")}, "InvalidDependency", "db → web → db"},
		{"kind", []string{component("web", "{apiVersion: apps/v1, kind: Deployment}")}, "InvalidComponent", `kind "Deployment" and apiVersion "apps/v1"`},
		{"text", []string{component("web", "text")}, "InvalidComponent", "resource is not an object"},
		{"unnamed", []string{"{name: '', resource: " + withImage("a") + "}"}, "Invalid", "metadata.name"},
		{"long", []string{app(long)}, "Invalid", "must be no more than 63"},
	} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest(test.components...)), &object.Object); err != nil {
			t.Fatal(err)
		}
		object.SetNamespace(s.namespace)
		object.SetName(test.name)
		fleettest.CreateUnchecked(t, s.Client, kindsNamed("KAPP")[0], object)
		kapp := &kappv1.KAPP{}
		kapp.Namespace, kapp.Name = s.namespace, test.name
		s.awaitStalled(kapp, test.reason, test.detail)
	}
	var left kappv1.KAPPList
	if err := s.List(t.Context(), &left); err != nil {
		t.Fatal(err)
	}
	for i := range left.Items {
		if left.Items[i].Namespace != s.namespace {
			continue
		}
		if err := s.Delete(t.Context(), &left.Items[i]); err != nil {
			t.Fatal(err)
		}
		fleettest.AwaitGone(t, s.Client, &left.Items[i])
	}
}
