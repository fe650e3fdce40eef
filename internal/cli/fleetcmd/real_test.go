// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	robotv1 "github.com/opdock/opdock/api/robot/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/run"
	"github.com/opdock/opdock/internal/testenv"
)

// onRealCluster is a user of the cluster that these tests share, in a namespace of their own. The fleet works in that
// namespace only, because the cluster is not one of opdock's by name.
func onRealCluster(t *testing.T) (user *clitest.Console, arguments []string, namespace string) {
	t.Helper()
	fleettest.Config(t) // skips the test if there is no control plane
	namespace = clustertest.Namespace(t)
	user = newConsole(nil)
	home := t.TempDir()
	user.Dock.Home = func() string { return home }
	user.Now = time.Now
	return user, []string{"run", "--kubeconfig", clustertest.Shared(t).Kubeconfig(), "--namespace", namespace}, namespace
}

func TestRunUntilReady(t *testing.T) {
	user, arguments, namespace := onRealCluster(t)
	code, screen := user.Screen(t.Context(), append(arguments, "--until-ready", "--samples", "appservice", "-o", "json")...)
	if code != cmdutil.ExitOK {
		t.Fatalf("exit code %d\n%s", code, screen)
	}
	var table []run.Row
	if err := json.Unmarshal(user.OutText.Bytes(), &table); err != nil {
		t.Fatalf("%v\n%s", err, user.OutText)
	}
	if len(table) != 2 {
		t.Fatalf("not two samples:\n%s", user.OutText)
	}
	for i, name := range []string{"nginx-app", "shop"} {
		if row := table[i]; row.Name != name || row.Namespace != namespace || !row.Ready || row.Kind != "AppService" {
			t.Errorf("got %+v, want a ready AppService %s", row, name)
		}
	}
	logs, err := filepath.Glob(filepath.Join(user.Dock.Home(), "fleets", "127.0.0.1-*-"+namespace+".log"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("the logs are %q (%v)", logs, err)
	}
	if log, err := os.ReadFile(logs[0]); err != nil || len(log) == 0 {
		t.Errorf("the fleet has not logged: %v", err)
	}
	if strings.Contains(screen, "INFO") {
		t.Errorf("the fleet's log is on the screen:\n%s", screen)
	}
	if !strings.Contains(user.ErrText.String(), "AppService shop: Ready") {
		t.Errorf("no line says that shop has become ready:\n%s", user.ErrText)
	}
}

func TestRunPrintsWhySamplesAreNotReady(t *testing.T) {
	user, arguments, namespace := onRealCluster(t)
	app := &appv1.AppService{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"}}
	app.Spec.Image = "nginx:1.29"
	app.Spec.PodMetadata = &sharedv1.PodMetadata{Annotations: map[string]string{"opdock.dev/behaviour": "image-pull-error"}}
	server := fleettest.Client(t)
	if err := server.Create(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	// Another fleet finds out first why, so the time is enough for this one to start and to see it.
	stop := fleettest.Run(t, fleettest.Config(t), manager.Options{Namespaces: []string{namespace}})
	fleettest.Await(t, server, app, func(app *appv1.AppService) string {
		return fleettest.Stalled(app.Status.Conditions, app.Generation, "ImagePullBackOff")
	})
	stop()
	code, screen := user.Screen(t.Context(), append(arguments, "--until-ready", "--samples", "shop", "--timeout", "15s")...)
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	for _, want := range []string{
		"shop was changed after it was applied; its changes are kept",
		"opdock: not ready after 15s: shop", "AppService shop: Stalled (ImagePullBackOff): pod shop-", "log of the fleet: ",
	} {
		if !strings.Contains(user.ErrText.String(), want) {
			t.Errorf("%q is not in\n%s", want, screen)
		}
	}
	if !strings.Contains(user.OutText.String(), "AppService   shop   no      Stalled") {
		t.Errorf("the table does not say it:\n%s", user.OutText)
	}
}

func TestRunNeedsItsNamespace(t *testing.T) {
	user, arguments, _ := onRealCluster(t)
	code, screen := user.Screen(t.Context(), append(arguments, "--until-ready", "--namespace", "there-is-none")...)
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	if !strings.Contains(screen, `namespace "there-is-none" does not exist`) || !strings.Contains(screen, "kubectl create namespace there-is-none") {
		t.Errorf("it does not say what to do:\n%s", screen)
	}
}

// A terminal gets its screen back at the end, and the table stays on it.
func TestRunOnATerminal(t *testing.T) {
	user, arguments, namespace := onRealCluster(t)
	terminal := &testenv.Buffer{}
	user.Err, user.ErrWidth = terminal, 100
	user.ErrSize = func() (int, int) { return 100, 30 }
	keys, released := make(chan string), make(chan struct{})
	user.Keys = func() (<-chan string, func(), error) { return keys, func() { close(released) }, nil }
	ended := make(chan int, 1)
	go func() { ended <- user.Run(t.Context(), append(arguments, "--samples", "robot_v1_robot")) }()
	testenv.Await(t, func() string {
		if strings.Contains(terminal.String(), "1 of 1 ready") {
			return ""
		}
		return "the robot is not ready:\n" + terminal.String()
	})
	// Everything below is found by owner references, so it is there only if the watches work.
	testenv.Await(t, func() string {
		for _, want := range []string{"✓ Robot robot-one", "└─ ✓ Deployment robot-one", "2 pods ready", "namespace " + namespace[:20], "Synced"} {
			if !strings.Contains(terminal.String(), want) {
				return want + " is not on the screen:\n" + terminal.String()
			}
		}
		return ""
	})
	keys <- "x \x1b[B"
	keys <- "q"
	clitest.ExpectCode(t, <-ended, cmdutil.ExitOK)
	<-released
	if text := terminal.String(); strings.Count(text, "\x1b[?1049h") != 1 || strings.Count(text, "\x1b[?1049l") != 1 {
		t.Errorf("the terminal was not given back: %q", text)
	}
	if !strings.Contains(user.OutText.String(), "Robot   robot-one   yes") {
		t.Errorf("the table is missing:\n%s", user.OutText)
	}
}

func TestRunUntilItIsInterrupted(t *testing.T) {
	for name, test := range map[string]struct {
		flags []string
		code  int
	}{
		"while it only watches": {nil, cmdutil.ExitOK},
		"while it waits":        {[]string{"--until-ready"}, cmdutil.ExitError},
	} {
		t.Run(name, func(t *testing.T) {
			user, arguments, namespace := onRealCluster(t)
			robot := &robotv1.Robot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "robot-one"}}
			robot.Spec.DeploymentName, robot.Spec.Suspend = "robot-one", true // so that it never becomes ready
			if err := fleettest.Client(t).Create(t.Context(), robot); err != nil {
				t.Fatal(err)
			}
			messages := &testenv.Buffer{}
			user.Err = messages
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			ended := make(chan int, 1)
			go func() {
				ended <- user.Run(ctx, append(append(arguments, "--samples", "robot_v1_robot"), test.flags...))
			}()
			testenv.Await(t, func() string {
				if strings.Contains(messages.String(), "Robot robot-one: Suspended") {
					return ""
				}
				return "it is not there: " + messages.String()
			})
			interrupt()
			clitest.ExpectCode(t, <-ended, test.code)
			if !strings.Contains(user.OutText.String(), "Robot   robot-one   no") {
				t.Errorf("the table is missing:\n%s", user.OutText)
			}
		})
	}
}

// What was changed in a sample stays changed when it is run again.
func TestRunKeepsWhatTheUserHasChanged(t *testing.T) {
	user, arguments, namespace := onRealCluster(t)
	arguments = append(arguments, "--until-ready", "--samples", "robot_v1_robot")
	if code, screen := user.Screen(t.Context(), arguments...); code != cmdutil.ExitOK {
		t.Fatalf("exit code %d\n%s", code, screen)
	}
	server := fleettest.Client(t)
	robot := &robotv1.Robot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "robot-one"}}
	if err := server.Patch(t.Context(), robot, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":3}}`))); err != nil {
		t.Fatal(err)
	}
	code, screen := user.Screen(t.Context(), arguments...)
	if code != cmdutil.ExitOK || !strings.Contains(screen, "Robot robot-one was changed after it was applied; its changes are kept") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(robot), robot); err != nil || *robot.Spec.Replicas != 3 {
		t.Errorf("there are %d replicas, not 3 (%v)", *robot.Spec.Replicas, err)
	}
}

// Another version of the fleet may run on a cluster that is not Opdock's. Its CRDs are not replaced by older ones.
func TestRunDoesNotReplaceNewerCRDs(t *testing.T) {
	user, arguments, _ := onRealCluster(t)
	server := fleettest.Client(t)
	robots := &unstructured.Unstructured{}
	robots.SetAPIVersion("apiextensions.k8s.io/v1")
	robots.SetKind("CustomResourceDefinition")
	read := func() {
		t.Helper()
		if err := server.Get(t.Context(), client.ObjectKey{Name: "robots.robot.llleon.io"}, robots); err != nil {
			t.Fatal(err)
		}
	}
	read()
	before := robots.GetResourceVersion()
	arguments = append(arguments, "--until-ready", "--samples", "robot_v1_robot")
	if code, screen := user.Screen(t.Context(), arguments...); code != cmdutil.ExitOK {
		t.Fatalf("exit code %d\n%s", code, screen)
	}
	if read(); robots.GetResourceVersion() != before {
		t.Error("a CRD was written although it is as it should be")
	}
	const patch = `[{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/newer", "value": {"type": "string"}}]`
	if err := server.Patch(t.Context(), robots, client.RawPatch("application/json-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		const back = `[{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/newer"}]`
		if err := server.Patch(context.Background(), robots, client.RawPatch("application/json-patch+json", []byte(back))); err != nil {
			t.Error(err)
		}
	})
	code, screen := user.Screen(t.Context(), arguments...)
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	for _, want := range []string{"CRD robots.robot.llleon.io on the server is of another version: replacing it would drop v1 spec.newer; nothing was changed", "run the version of opdock that the CRD belongs to"} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is not in\n%s", want, screen)
		}
	}
	if read(); !strings.Contains(fmt.Sprint(robots.Object), "newer") {
		t.Error("the field is gone")
	}
}
