// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// simulated starts the simulation on a store that holds a node and whatever else is given. The
// function it returns stops it and comes back when it has stopped.
func simulated(t *testing.T, client *fake.Clientset) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, client) }()
	stop = func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("run = %v", err)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("the simulation does not stop")
		}
		done <- nil // stopping twice is fine
	}
	t.Cleanup(stop)
	return stop
}

// eventually waits for a condition and fails with what it was when time is up.
func eventually(t *testing.T, what string, condition func(context.Context) (bool, string)) {
	t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		ok, state := condition(ctx)
		last = state
		return ok, nil
	})
	if err != nil {
		t.Fatalf("%s: %v; at last: %s", what, err, last)
	}
}

func eventuallyPod(t *testing.T, client *fake.Clientset, name, what string, condition func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, name+" "+what, func(ctx context.Context) (bool, string) {
		var err error
		pod, err = client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return condition(pod), summary(pod)
	})
	return pod
}

func podNamed(name, annotation string) *corev1.Pod {
	pod := boundPod(annotation, "")
	pod.Name, pod.UID = name, types.UID(name)
	return pod
}

func createPod(t *testing.T, client *fake.Clientset, pod *corev1.Pod) {
	t.Helper()
	if _, err := client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func updatePod(t *testing.T, client *fake.Clientset, name string, change func(*corev1.Pod)) {
	t.Helper()
	eventually(t, "updating "+name, func(ctx context.Context) (bool, string) {
		pod, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		change(pod)
		_, err = client.CoreV1().Pods("default").Update(ctx, pod, metav1.UpdateOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

func TestPodsRunOnNodes(t *testing.T) {
	client := newStore(t, NodeObject(0))
	simulated(t, client)
	hostPod := podNamed("host", "")
	hostPod.Spec.HostNetwork = true
	for _, pod := range []*corev1.Pod{podNamed("one", ""), podNamed("two", ""), podNamed("never", "never-ready"), hostPod} {
		createPod(t, client, pod)
	}
	one := eventuallyPod(t, client, "one", "is ready", podutil.IsPodReady)
	two := eventuallyPod(t, client, "two", "is ready", podutil.IsPodReady)
	if one.Status.PodIP == two.Status.PodIP || one.Status.HostIP != "10.64.0.1" {
		t.Errorf("addresses are %s and %s on %s", one.Status.PodIP, two.Status.PodIP, one.Status.HostIP)
	}
	host := eventuallyPod(t, client, "host", "is ready", podutil.IsPodReady)
	if host.Status.PodIP != host.Status.HostIP {
		t.Errorf("a pod in the host network has %s; want the node's %s", host.Status.PodIP, host.Status.HostIP)
	}
	never := eventuallyPod(t, client, "never", "runs", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
	if podutil.IsPodReady(never) {
		t.Error("a never-ready pod is ready")
	}
	updatePod(t, client, "never", annotate(""))
	eventuallyPod(t, client, "never", "is ready without the annotation", podutil.IsPodReady)

	eventually(t, "the node's lease", func(ctx context.Context) (bool, string) {
		lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, "node-0", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return *lease.Spec.HolderIdentity == leaseHolder && len(lease.OwnerReferences) == 1, fmt.Sprint(lease.Spec)
	})
}

func TestANodeMadeByHandBecomesReady(t *testing.T) {
	client := newStore(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "mine"}})
	simulated(t, client)
	pod := podNamed("pod", "")
	pod.Spec.NodeName = "mine"
	createPod(t, client, pod)
	pod = eventuallyPod(t, client, "pod", "is ready on an address", func(pod *corev1.Pod) bool {
		return podutil.IsPodReady(pod) && pod.Status.HostIP != ""
	})
	if !strings.HasPrefix(pod.Status.HostIP, "10.65.") {
		t.Errorf("host address = %s; want one of %s", pod.Status.HostIP, namedNodeNetwork)
	}
}

func TestAddressesDoNotRepeatAfterARestart(t *testing.T) {
	client := newStore(t, NodeObject(0))
	stop := simulated(t, client)
	createPod(t, client, podNamed("before", ""))
	before := eventuallyPod(t, client, "before", "is ready", podutil.IsPodReady)
	stop()

	simulated(t, client)
	createPod(t, client, podNamed("after", ""))
	after := eventuallyPod(t, client, "after", "is ready", podutil.IsPodReady)
	if after.Status.PodIP == before.Status.PodIP {
		t.Errorf("both pods have %s", after.Status.PodIP)
	}
}

func TestDeletedPodsGo(t *testing.T) {
	client := newStore(t, NodeObject(0))
	simulated(t, client)
	held := podNamed("held", "")
	held.Finalizers = []string{"example.com/hold"}
	createPod(t, client, held)
	createPod(t, client, podNamed("free", ""))
	for _, name := range []string{"held", "free"} {
		eventuallyPod(t, client, name, "is ready", podutil.IsPodReady)
		updatePod(t, client, name, func(pod *corev1.Pod) {
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(30))
		})
	}
	for _, name := range []string{"held", "free"} {
		eventually(t, name+" is gone", func(ctx context.Context) (bool, string) {
			_, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
	}
	// The store of this test knows no finalizers; what was written tells whether they were respected.
	ended := map[string]bool{}
	for _, action := range client.Actions() {
		update, ok := action.(clienttesting.UpdateAction)
		if !ok || action.GetSubresource() != "status" {
			continue
		}
		if pod, ok := update.GetObject().(*corev1.Pod); ok && podutil.IsPodTerminal(pod) {
			ended[pod.Name] = true
		}
	}
	if !ended["held"] || ended["free"] {
		t.Errorf("final phases were written of %v; want one of the pod with a finalizer only", ended)
	}
}

func TestUnknownBehaviourIsReportedOnce(t *testing.T) {
	client := newStore(t, NodeObject(0))
	stop := simulated(t, client)
	createPod(t, client, podNamed("odd", "explode"))
	eventuallyPod(t, client, "odd", "is ready all the same", podutil.IsPodReady)
	updatePod(t, client, "odd", setImage("app:2"))
	eventuallyPod(t, client, "odd", "has restarted", func(pod *corev1.Pod) bool {
		return podutil.IsPodReady(pod) && pod.Status.ContainerStatuses[0].RestartCount == 1
	})
	stop()
	simulated(t, client)
	updatePod(t, client, "odd", setImage("app:3"))
	eventuallyPod(t, client, "odd", "has restarted", func(pod *corev1.Pod) bool {
		return podutil.IsPodReady(pod) && pod.Status.ContainerStatuses[0].RestartCount == 2
	})

	list, err := client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	warnings := slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return e.Reason != "UnknownBehaviour" })
	if len(warnings) != 1 {
		t.Fatalf("%d warnings; want one", len(warnings))
	}
	for _, want := range []string{"explode", "crash-loop", "ready-after=DURATION"} {
		if !strings.Contains(warnings[0].Message, want) {
			t.Errorf("message %q lacks %q", warnings[0].Message, want)
		}
	}
}

func TestALostNodeIsSilentUntilItIsBack(t *testing.T) {
	client := newStore(t, NodeObject(0))
	simulated(t, client)
	createPod(t, client, podNamed("culprit", "node-lost"))
	createPod(t, client, podNamed("bystander", ""))
	nodeReady := func(want corev1.ConditionStatus) {
		t.Helper()
		eventually(t, "Ready is "+string(want), func(ctx context.Context) (bool, string) {
			node, err := client.CoreV1().Nodes().Get(ctx, "node-0", metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			return nodeCondition(&node.Status, corev1.NodeReady).Status == want, fmt.Sprint(node.Status.Conditions)
		})
	}
	nodeReady(corev1.ConditionUnknown)
	notReady := func(pod *corev1.Pod) bool {
		ready := podutil.GetPodReadyCondition(pod.Status)
		return ready != nil && ready.Status == corev1.ConditionFalse
	}
	eventuallyPod(t, client, "culprit", "is not ready", notReady)

	updatePod(t, client, "culprit", annotate(""))
	nodeReady(corev1.ConditionTrue)
	eventuallyPod(t, client, "culprit", "is ready again", podutil.IsPodReady)
	eventuallyPod(t, client, "bystander", "is ready again", podutil.IsPodReady)
}

// The rights are the least that work: everything that is done is allowed, and everything that is
// allowed is done.
func TestClusterRoleIsExactlyWhatIsNeeded(t *testing.T) {
	client := newStore(t, NodeObject(0))
	stop := simulated(t, client)
	createPod(t, client, podNamed("culprit", "node-lost"))
	createPod(t, client, podNamed("crashing", "crash-loop,max-backoff=1s"))
	eventually(t, "a lost node", func(ctx context.Context) (bool, string) {
		node, err := client.CoreV1().Nodes().Get(ctx, "node-0", metav1.GetOptions{})
		return err == nil && isLost(node), fmt.Sprint(err)
	})
	updatePod(t, client, "culprit", annotate(""))
	eventuallyPod(t, client, "crashing", "crashes often enough for its event to be counted", func(pod *corev1.Pod) bool {
		return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].RestartCount > 1
	})
	updatePod(t, client, "culprit", func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.Now()) })

	allowed := map[string]bool{}
	for _, rule := range ClusterRole().Rules {
		for _, verb := range rule.Verbs {
			allowed[verb+" "+rule.Resources[0]+" "+rule.APIGroups[0]] = false
		}
	}
	// What the test itself does with the same client.
	own := map[string]bool{"get nodes ": true, "get pods ": true, "create pods ": true, "update pods ": true}
	eventually(t, "use of all rights", func(context.Context) (bool, string) {
		for _, action := range client.Actions() {
			resource := action.GetResource().Resource
			if sub := action.GetSubresource(); sub != "" {
				resource += "/" + sub
			}
			key := action.GetVerb() + " " + resource + " " + action.GetResource().Group
			if _, ok := allowed[key]; ok {
				allowed[key] = true
			} else if !own[key] {
				t.Errorf("%q is done but not allowed", key)
				own[key] = true // told once
			}
		}
		var unused []string
		for key, used := range allowed {
			// A lease is renewed after ten seconds, which no test waits for; kwok's own tests cover it.
			if !used && key != "update leases coordination.k8s.io" {
				unused = append(unused, key)
			}
		}
		return len(unused) == 0, "unused: " + strings.Join(unused, ", ")
	})
	stop()
	binding := ClusterRoleBinding()
	if binding.RoleRef.Name != ClusterRole().Name || binding.Subjects[0].Name != User {
		t.Errorf("binding %+v", binding)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// Nobody listens there: a simulation without a server ends as well.
	if err := Run(ctx, Options{Config: &rest.Config{Host: "127.0.0.1:1"}}); err != nil {
		t.Errorf("Run = %v", err)
	}
	if err := Run(t.Context(), Options{Config: &rest.Config{Host: "://"}}); err == nil {
		t.Error("Run accepts a broken configuration")
	}
}
