// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/target"
	"github.com/opdock/opdock/internal/testenv"
)

// projectOnRealCluster is a user whose project's cluster is the one that these tests share, with a copy of the project. All of
// the project is removed at the end.
func projectOnRealCluster(t *testing.T, fixture string) (run func(args ...string) (int, *clitest.Console), dir string) {
	t.Helper()
	fleettest.Config(t) // skips the test if there is no control plane
	dir = projectFixture(t, fixture)
	found, err := project.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	its := clitest.Alive
	its.Name = newProjectConsole(&clitest.FakeDock{}).ClusterNameFor(found)
	run = func(args ...string) (int, *clitest.Console) {
		user := newProjectConsole(&clitest.FakeDock{Clusters: clitest.Clusters(its)})
		user.Now = time.Now
		user.Dock.Open = func(name string) (target.Running, error) {
			return &clitest.FakeCluster{Dock: user.Fake, Name: name, File: clustertest.Shared(t).Kubeconfig()}, nil
		}
		code, _ := user.Screen(t.Context(), append(args, "--dir", dir)...)
		return code, user
	}
	t.Cleanup(func() {
		user := newProjectConsole(nil)
		verb := "undeploy"
		if fixture == "plain" {
			verb = "uninstall"
		}
		// Not the test's context, which has ended by now.
		code := user.Run(context.Background(), []string{verb, "--force", "--kubeconfig", clustertest.Shared(t).Kubeconfig(), "--dir", filepath.Join("..", "..", "project", "testdata", fixture)})
		if code != cmdutil.ExitOK {
			t.Errorf("cleaning up: %s", user.ErrText)
		}
		// As another user of the same cluster it knows nothing of the inventory.
		inventory := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: (&apply.Set{Project: found.Name, Verb: apply.VerbDeploy}).Name(),
		}}
		if err := fleettest.Client(t).Delete(context.Background(), inventory); client.IgnoreNotFound(err) != nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
	return run, dir
}

func expectRun(t *testing.T, code int, user *clitest.Console, wantCode int, parts ...string) {
	t.Helper()
	screen := user.OutText.String() + user.ErrText.String()
	if code != wantCode {
		t.Errorf("exit code %d, want %d:\n%s", code, wantCode, screen)
	}
	expectScreen(t, screen, parts...)
}

// readSample reads the object of a manifest.
func readSample(t *testing.T, path string) *unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sample := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &sample.Object); err != nil {
		t.Fatal(err)
	}
	return sample
}

// breakPods lets the pods of the project sdk behave as if there were no image.
func breakPods(t *testing.T, dir string) {
	t.Helper()
	const name = "deploy/operator.yaml"
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	const labels = "      labels:\n"
	writeFile(t, dir, name, strings.Replace(string(content), labels, "      annotations: {opdock.dev/behaviour: image-pull-error}\n"+labels, 1))
}

func TestAProjectOnACluster(t *testing.T) {
	run, dir := projectOnRealCluster(t, "single")
	step := func(code int, args, parts []string) {
		t.Helper()
		got, user := run(args...)
		expectRun(t, got, user, code, parts...)
	}
	step(cmdutil.ExitOK, []string{"install", "--dry-run"}, []string{"WOULD BE", "ships.sea.example.com   created", "nothing was changed"})
	step(cmdutil.ExitOK, []string{"install"}, []string{`Installing the CRDs of harbour in cluster "harbour"`, "CRDs established: 1 created"})
	step(cmdutil.ExitOK, []string{"install"}, []string{"CRDs established: 1 unchanged"})
	step(cmdutil.ExitOK, []string{"deploy", "--image", "team/harbour:v1"}, []string{
		"manifests applied: 9 created, 1 unchanged", "operator available", "harbour-system   harbour-controller-manager",
		"skipped ValidatingWebhookConfiguration harbour-validating-webhook-configuration: no process serves",
		"are simulated", "to run the operator itself: opdock dev",
	})
	step(cmdutil.ExitOK, []string{"deploy", "--image", "team/harbour:v2", "--dry-run"}, []string{"Deployment                 harbour-system   harbour-controller-manager            configured"})

	// The kinds are served, as install has promised.
	sample := readSample(t, filepath.Join(dir, "config/samples/sea_v1_ship.yaml"))
	sample.SetNamespace(clustertest.Namespace(t))
	if err := fleettest.Client(t).Create(t.Context(), sample); err != nil {
		t.Fatal(err)
	}
	left := "Ship " + sample.GetNamespace() + "/argo"
	step(cmdutil.ExitError, []string{"uninstall"}, []string{"nothing was deleted: deleting the CRDs would also delete " + left, "--force"})
	step(cmdutil.ExitError, []string{"undeploy"}, []string{"nothing was deleted: deleting the CRDs would also delete " + left})
	step(cmdutil.ExitOK, []string{"undeploy", "--dry-run"}, []string{"(needs --force): " + left, "harbour-system                        deleted"})
	step(cmdutil.ExitOK, []string{"undeploy", "--keep-crds"}, []string{"gone: 9 deleted"})
	step(cmdutil.ExitOK, []string{"uninstall", "--force"}, []string{"gone: 1 deleted"})
	step(cmdutil.ExitOK, []string{"undeploy"}, []string{`no objects of harbour found in cluster "harbour"`})
	step(cmdutil.ExitError, []string{"uninstall", "--ignore-not-found=false"}, []string{"1 of 1 objects did not exist"})
}

func TestKindsWithoutConversion(t *testing.T) {
	run, _ := projectOnRealCluster(t, "multigroup")
	code, user := run("install")
	expectRun(t, code, user, cmdutil.ExitOK, "CRDs established: 2 created", "CRD carts.land.example.com: no process serves its conversion webhook")
	code, user = run("uninstall")
	expectRun(t, code, user, cmdutil.ExitOK, "gone: 2 deleted")
}

func TestWhatProgramsReadAboutADeployment(t *testing.T) {
	run, _ := projectOnRealCluster(t, "sdk")
	namespace := clustertest.Namespace(t)
	code, user := run("deploy", "-o", "json", "--namespace", namespace, "--kubeconfig", clustertest.Shared(t).Kubeconfig(), "--image", "team/ferry:v1")
	expectRun(t, code, user, cmdutil.ExitOK)
	var report projectReport
	if err := json.Unmarshal(user.OutText.Bytes(), &report); err != nil {
		t.Fatalf("%v:\n%s", err, user.OutText)
	}
	if report.Project != "ferry-operator" || !strings.HasPrefix(report.Cluster, "https://") || len(report.Objects) != 5 || len(report.Notes) != 0 {
		t.Errorf("the report is %+v", report)
	}
	for _, object := range report.Objects {
		if object.Action != "created" || object.Kind != "CustomResourceDefinition" && object.Namespace != namespace {
			t.Errorf("%+v", object)
		}
	}
	if user.ErrText.Len() > 0 {
		t.Errorf("there is more:\n%s", user.ErrText)
	}
}

func TestWhyADeploymentFails(t *testing.T) {
	run, dir := projectOnRealCluster(t, "sdk")
	kubeconfig := clustertest.Shared(t).Kubeconfig()
	code, user := run("deploy", "--kubeconfig", kubeconfig, "--namespace", "there-is-none", "--image", "team/ferry:v1")
	expectRun(t, code, user, cmdutil.ExitError, `namespace "there-is-none" does not exist`, "nothing was changed", "kubectl create namespace there-is-none")

	writeFile(t, dir, "deploy/certificate.yaml", "{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: serving}}\n")
	code, user = run("deploy", "--kubeconfig", kubeconfig, "--image", "team/ferry:v1")
	expectRun(t, code, user, cmdutil.ExitError, "does not have the kinds of Certificate serving (cert-manager.io/v1); nothing was changed")

	// With simulated pods, it would have no effect anyway.
	breakPods(t, dir)
	namespace := clustertest.Namespace(t)
	testenv.Eventually(t, "a pod has no image", func() error {
		run("deploy", "--namespace", namespace, "--timeout", "1s")
		pods := &corev1.PodList{}
		if err := fleettest.Client(t).List(t.Context(), pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		if !slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return len(pod.Status.ContainerStatuses) > 0 }) {
			return fmt.Errorf("there are %d pods, and none has begun", len(pods.Items))
		}
		return nil
	})
	code, user = run("deploy", "--namespace", namespace, "--timeout", "8s")
	expectRun(t, code, user, cmdutil.ExitError, "not available after 8s: Deployment ferry-operator is not available: pod ferry-operator-",
		"ImagePull", "opdock undeploy", "--timeout 16s")
}

func TestARefusedKindIsShownInTheSource(t *testing.T) {
	run, dir := projectOnRealCluster(t, "single")
	name := "config/crd/bases/sea.example.com_ships.yaml"
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, name, strings.Replace(string(content), "minimum: 1", "minimum: 1\n                  default: many", 1))
	code, user := run("install")
	expectRun(t, code, user, cmdutil.ExitError, `cluster "harbour" rejected CRD ships.sea.example.com`, "api/v1/ship_types.go:11: spec.size: Invalid value")
}

// undeploy removes what deploy has applied, not what the manifests say by then.
func TestUndeployRemovesWhatWasApplied(t *testing.T) {
	run, dir := projectOnRealCluster(t, "single")
	code, user := run("deploy", "--image", "team/harbour:v1")
	expectRun(t, code, user, cmdutil.ExitOK, "manifests applied: 10 created")
	// Everything has another name now, and one of the names is that of something else.
	replaceIn(t, dir, "config/default/kustomization.yaml", "namePrefix: harbour-", "namePrefix: port-")
	precious := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "port-manager-role"},
	}}
	server := fleettest.Client(t)
	if err := server.Create(t.Context(), precious); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Delete(context.Background(), precious); err != nil {
			t.Errorf("it was deleted, although it was never applied: %v", err)
		}
	})
	code, user = run("undeploy")
	expectRun(t, code, user, cmdutil.ExitOK, "gone: 10 deleted", "harbour-controller-manager")
	if text := user.OutText.String() + user.ErrText.String(); strings.Contains(text, "port-") || strings.Contains(text, "no inventory") {
		t.Errorf("it speaks of something else:\n%s", text)
	}
	replaceIn(t, dir, "config/default/kustomization.yaml", "namePrefix: port-", "namePrefix: harbour-")
}

// What the manifests no longer have is pruned, and the dry run says so.
func TestDeployPrunes(t *testing.T) {
	run, dir := projectOnRealCluster(t, "single")
	code, user := run("deploy", "--image", "team/harbour:v1")
	expectRun(t, code, user, cmdutil.ExitOK, "10 created")
	roles, err := os.ReadFile(filepath.Join(dir, "config/rbac/role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(roles), "\n---\n")
	writeFile(t, dir, "config/rbac/role.yaml", first)
	code, user = run("deploy", "--image", "team/harbour:v1", "--dry-run")
	expectRun(t, code, user, cmdutil.ExitOK, "harbour-viewer-role                   pruned", "nothing was changed")
	code, user = run("deploy", "--image", "team/harbour:v1")
	expectRun(t, code, user, cmdutil.ExitOK, "9 unchanged, 1 pruned")
	role := &unstructured.Unstructured{}
	role.SetAPIVersion("rbac.authorization.k8s.io/v1")
	role.SetKind("ClusterRole")
	if err := fleettest.Client(t).Get(t.Context(), client.ObjectKey{Name: "harbour-viewer-role"}, role); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// "make deploy" after "opdock deploy" with another image is no conflict, because it is the same manager.
func TestKubectlAfterDeployIsNoConflict(t *testing.T) {
	run, dir := projectOnRealCluster(t, "single")
	code, user := run("deploy", "--image", "team/harbour:v1")
	expectRun(t, code, user, cmdutil.ExitOK, "10 created")
	found, err := project.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := found.Manifests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range manifests {
		if project.IsWebhookConfiguration(object) {
			continue
		}
		// As kubectl apply --server-side does it.
		if err := fleettest.Client(t).Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("kubectl")); err != nil {
			t.Error(err)
		}
	}
}

// The operator converts between the versions of a kind that is kept: its objects must stay readable.
func TestKeptKindsStayReadable(t *testing.T) {
	run, _ := projectOnRealCluster(t, "multigroup")
	code, user := run("deploy", "--image", "team/fleet:v1")
	expectRun(t, code, user, cmdutil.ExitOK, "CRD carts.land.example.com: no process serves its conversion webhook")
	code, user = run("undeploy", "--keep-crds")
	expectRun(t, code, user, cmdutil.ExitOK, "CRD carts.land.example.com is kept without conversion")
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	if err := fleettest.Client(t).Get(t.Context(), client.ObjectKey{Name: "carts.land.example.com"}, definition); err != nil {
		t.Fatal(err)
	}
	if strategy, _, _ := unstructured.NestedString(definition.Object, "spec", "conversion", "strategy"); strategy != "None" {
		t.Errorf("its conversion is %s", strategy)
	}
}

// While opdock dev runs on the cluster, deploy and undeploy leave what it uses to it, and say so.
func TestDeployBesideDev(t *testing.T) {
	run, dir := projectOnRealCluster(t, "single")
	found, err := project.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := found.Manifests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server, err := apply.Connect(clustertest.Shared(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	var used []*unstructured.Unstructured
	for _, object := range manifests {
		if kind := object.GetKind(); kind != "Deployment" && kind != "Service" && !project.IsWebhookConfiguration(object) {
			used = append(used, object)
		}
	}
	set := &apply.Set{Project: found.Name, Verb: apply.VerbDev, Part: "all", Namespace: apply.InventoryNamespace(true, "")}
	if _, err := server.Apply(t.Context(), used, apply.Options{Manager: apply.DevManager, Set: set, MakeNamespaces: true}); err != nil {
		t.Fatal(err)
	}
	hold := func(session string) {
		t.Helper()
		if err := server.Update(context.Background(), set, func(i *apply.Inventory) { i.Session = session }); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if _, err := server.Delete(context.Background(), used, apply.Options{Set: set}); err != nil {
			t.Error(err)
		}
	})
	hold("pid 7 on another-machine")
	code, user := run("deploy", "--image", "team/harbour:v1")
	expectRun(t, code, user, cmdutil.ExitOK, "opdock dev of harbour (pid 7 on another-machine) is running on")
	code, user = run("undeploy")
	expectRun(t, code, user, cmdutil.ExitOK, "gone: 8 kept, 2 deleted", "kept 8 objects, because opdock dev of harbour (pid 7 on another-machine) is running")
	hold("")
	code, user = run("undeploy")
	expectRun(t, code, user, cmdutil.ExitOK, "gone: 8 deleted")
}

func replaceIn(t *testing.T, dir, name, before, after string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), before) {
		t.Fatalf("%q is not in %s:\n%s", before, name, content)
	}
	writeFile(t, dir, name, strings.Replace(string(content), before, after, 1))
}
