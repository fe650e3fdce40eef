// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package applyconfiguration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metaac "k8s.io/client-go/applyconfigurations/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	appac "github.com/opdock/opdock/client/applyconfiguration/app/v1"
	appalphaac "github.com/opdock/opdock/client/applyconfiguration/app/v1alpha1"
	collectorac "github.com/opdock/opdock/client/applyconfiguration/collector/v1"
	kappac "github.com/opdock/opdock/client/applyconfiguration/kapp/v1"
	kubegroupac "github.com/opdock/opdock/client/applyconfiguration/kubegroup/v1"
	robotac "github.com/opdock/opdock/client/applyconfiguration/robot/v1"
	sharedac "github.com/opdock/opdock/client/applyconfiguration/shared/v1"
	"github.com/opdock/opdock/client/clientset/versioned"
	"github.com/opdock/opdock/client/clientset/versioned/fake"
	"github.com/opdock/opdock/internal/clienttest"
)

const owner = "extract-test"

// What a manager applies is what it extracts, for every kind and every field that a sample has. That fails if the
// client merges objects by other rules than the API server.
func TestExtractGivesBackWhatWasApplied(t *testing.T) {
	for name, where := range places(t) {
		t.Run(name, func(t *testing.T) {
			kinds := applyAndExtract(where)
			files, err := filepath.Glob("../../config/samples/*_v*.yaml")
			if err != nil || len(files) < len(kinds) {
				t.Fatalf("there are %d samples for %d kinds: %v", len(files), len(kinds), err)
			}
			for _, file := range files {
				t.Run(filepath.Base(file), func(t *testing.T) {
					sample := readSample(t, file)
					sample.SetNamespace(where.namespace)
					kind := sample.GetAPIVersion() + " " + sample.GetKind()
					if kinds[kind] == nil {
						t.Fatalf("%s is missing here", kind)
					}
					got := kinds[kind](t, sample)
					want, err := json.Marshal(sample)
					if err != nil {
						t.Fatal(err)
					}
					if !sameJSON(t, got, want) {
						t.Errorf("extracted\n%s\nof what was applied\n%s", got, want)
					}
				})
			}
		})
	}
}

// A list with keys is shared element by element. Leaving out a key and giving its default mean the same element.
func TestManagersShareAList(t *testing.T) {
	for name, where := range places(t) {
		t.Run(name, func(t *testing.T) {
			robots := where.RobotV1().Robots(where.namespace)
			container := func(port *sharedac.ContainerPortApplyConfiguration) *robotac.RobotApplyConfiguration {
				return robotac.Robot("shared-list", where.namespace).WithSpec(robotac.RobotSpec().WithTemplate(sharedac.PodTemplate().
					WithSpec(sharedac.PodSpec().WithContainers(sharedac.Container().WithName("main").WithPorts(port)))))
			}
			first := container(sharedac.ContainerPort().WithContainerPort(80).WithName("http"))
			if _, err := robots.Apply(t.Context(), first, metav1.ApplyOptions{FieldManager: "first"}); err != nil {
				t.Fatal(err)
			}
			second := container(sharedac.ContainerPort().WithContainerPort(81).WithName("metrics"))
			robot, err := robots.Apply(t.Context(), second, metav1.ApplyOptions{FieldManager: "second"})
			if err != nil {
				t.Fatal(err)
			}
			if ports := robot.Spec.Template.Spec.Containers[0].Ports; len(ports) != 2 {
				t.Errorf("the ports are %+v", ports)
			}
			conflict := container(sharedac.ContainerPort().WithContainerPort(80).WithProtocol(corev1.ProtocolTCP).WithName("web"))
			if _, err := robots.Apply(t.Context(), conflict, metav1.ApplyOptions{FieldManager: "second"}); !apierrors.IsConflict(err) {
				t.Errorf("another name for the same port gives %v", err)
			}
			extracted, err := robotac.ExtractRobot(robot, "first")
			if err != nil {
				t.Fatal(err)
			}
			if ports := extracted.Spec.Template.Spec.Containers[0].Ports; len(ports) != 1 || *ports[0].Name != "http" {
				t.Errorf("the first extracts %+v", ports)
			}
		})
	}
}

func TestExtractStatus(t *testing.T) {
	clienttest.NeedsServer(t)
	where := server(t)
	robots := where.RobotV1().Robots(where.namespace)
	spec := robotac.Robot("status", where.namespace).WithSpec(robotac.RobotSpec().WithReplicas(2))
	if _, err := robots.Apply(t.Context(), spec, metav1.ApplyOptions{FieldManager: owner}); err != nil {
		t.Fatal(err)
	}
	status := robotac.Robot("status", where.namespace).WithStatus(robotac.RobotStatus().WithReplicas(1).WithConditions(
		metaac.Condition().WithType("Ready").WithStatus(metav1.ConditionFalse).WithReason("Waiting").WithMessage("one of two").
			WithLastTransitionTime(metav1.Now())))
	robot, err := robots.ApplyStatus(t.Context(), status, metav1.ApplyOptions{FieldManager: owner})
	if err != nil {
		t.Fatal(err)
	}
	extracted, err := robotac.ExtractRobotStatus(robot, owner)
	if err != nil {
		t.Fatal(err)
	}
	if extracted.Spec != nil || extracted.Status == nil || *extracted.Status.Replicas != 1 || len(extracted.Status.Conditions) != 1 {
		t.Errorf("extracted %+v", extracted)
	}
}

// A place is where objects are applied.
type place struct {
	versioned.Interface
	namespace string
}

// places are a fake and, if there is one, a real server, between which a program should see no difference here.
func places(t *testing.T) map[string]place {
	t.Helper()
	found := map[string]place{"fake": {fake.NewClientset(), "default"}}
	if os.Getenv("OPDOCK_CONTROLPLANE") != "" {
		found["server"] = server(t)
	}
	return found
}

func server(t *testing.T) place {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	core, err := typedcorev1.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	namespace, err := core.Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "extract-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return place{client, namespace.Name}
}

// applyAndExtract returns for each kind a function that applies an object and returns as JSON what it extracts then.
func applyAndExtract(p place) map[string]func(*testing.T, *unstructured.Unstructured) []byte {
	return map[string]func(*testing.T, *unstructured.Unstructured) []byte{
		"app.example.com/v1 AppService":          roundTrip(p.AppV1().AppServices(p.namespace).Apply, appac.ExtractAppService),
		"app.example.com/v1alpha1 AppService":    roundTrip(p.AppV1alpha1().AppServices(p.namespace).Apply, appalphaac.ExtractAppService),
		"kubegroup.generals.space/v1 PodCluster": roundTrip(p.KubegroupV1().PodClusters(p.namespace).Apply, kubegroupac.ExtractPodCluster),
		"robot.llleon.io/v1 Robot":               roundTrip(p.RobotV1().Robots(p.namespace).Apply, robotac.ExtractRobot),
		"collector.ip/v1 Collector":              roundTrip(p.CollectorV1().Collectors(p.namespace).Apply, collectorac.ExtractCollector),
		"kanggege.k8sio.com/v1 KAPP":             roundTrip(p.KanggegeV1().KAPPs(p.namespace).Apply, kappac.ExtractKAPP),
	}
}

func roundTrip[Object, Configuration any](
	apply func(context.Context, *Configuration, metav1.ApplyOptions) (*Object, error),
	extract func(*Object, string) (*Configuration, error),
) func(*testing.T, *unstructured.Unstructured) []byte {
	return func(t *testing.T, sample *unstructured.Unstructured) []byte {
		t.Helper()
		raw, err := sample.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var configuration Configuration
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&configuration); err != nil {
			t.Fatal(err)
		}
		applied, err := apply(t.Context(), &configuration, metav1.ApplyOptions{FieldManager: owner, Force: true})
		if err != nil {
			t.Fatal(err)
		}
		extracted, err := extract(applied, owner)
		if err != nil {
			t.Fatal(err)
		}
		result, err := json.Marshal(extracted)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
}

func readSample(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sample := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &sample.Object); err != nil {
		t.Fatal(err)
	}
	return sample
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var left, right any
	for target, raw := range map[*any][]byte{&left: a, &right: b} {
		if err := json.Unmarshal(raw, target); err != nil {
			t.Fatal(err)
		}
	}
	return reflect.DeepEqual(left, right)
}
