// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"

	"github.com/opdock/opdock/internal/testenv"
)

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{container("app:1")}},
			},
		},
	}
}

// rolledOut is what kubectl rollout status waits for.
func rolledOut(d *appsv1.Deployment) error {
	return errors.Join(
		expect("observedGeneration", d.Status.ObservedGeneration, d.Generation),
		expect("updatedReplicas", d.Status.UpdatedReplicas, *d.Spec.Replicas),
		expect("replicas", d.Status.Replicas, *d.Spec.Replicas),
		expect("availableReplicas", d.Status.AvailableReplicas, *d.Spec.Replicas),
	)
}

// startDeployment creates a Deployment and waits until it is Available.
func (w *world) startDeployment(t *testing.T, d *appsv1.Deployment) *appsv1.Deployment {
	t.Helper()
	must(w.AppsV1().Deployments(w.namespace).Create(t.Context(), d, metav1.CreateOptions{}))(t)
	return w.awaitRollout(t, d.Name)
}

func (w *world) awaitRollout(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	var d *appsv1.Deployment
	testenv.Eventually(t, "Deployment "+name+" is rolled out", func() (err error) {
		if d, err = w.AppsV1().Deployments(w.namespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		return rolledOut(d)
	})
	return d
}

// scale updates the scale of a Deployment, whose status a controller may write at the same time.
func (w *world) scale(t *testing.T, name string, replicas int32) {
	t.Helper()
	deployments := w.AppsV1().Deployments(w.namespace)
	try(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		scale, err := deployments.GetScale(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		scale.Spec.Replicas = replicas
		_, err = deployments.UpdateScale(t.Context(), name, scale, metav1.UpdateOptions{})
		return err
	}))
}

func (w *world) pods(t *testing.T, app string) []corev1.Pod {
	t.Helper()
	return must(w.CoreV1().Pods(w.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + app}))(t).Items
}

func TestDeploymentRollsOut(t *testing.T) {
	w := newWorld(t)
	d := w.startDeployment(t, deployment("web", 3))
	available := false
	for _, condition := range d.Status.Conditions {
		available = available || condition.Type == appsv1.DeploymentAvailable && condition.Status == corev1.ConditionTrue
	}
	if !available {
		t.Errorf("it is not Available: %+v", d.Status.Conditions)
	}

	patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"app:2"}]}}}}`)
	must(w.AppsV1().Deployments(w.namespace).Patch(t.Context(), "web", types.StrategicMergePatchType, patch, metav1.PatchOptions{}))(t)
	w.awaitRollout(t, "web")
	testenv.Eventually(t, "only pods with the new image are left", func() error {
		pods := w.pods(t, "web")
		for i := range pods {
			if image := pods[i].Spec.Containers[0].Image; image != "app:2" {
				return fmt.Errorf("pod %s has %s", pods[i].Name, image)
			}
		}
		return expect("number of pods", len(pods), 3)
	})
	sets := must(w.AppsV1().ReplicaSets(w.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"}))(t).Items
	if len(sets) != 2 {
		t.Errorf("there are %d ReplicaSets; the old one should be kept for a rollback", len(sets))
	}
}

func TestDeploymentWaitsForReadyPods(t *testing.T) {
	w := newWorld(t)
	w.startDeployment(t, deployment("web", 2))
	patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{%q:"never-ready"}}}}}`, behaviourAnnotation)
	must(w.AppsV1().Deployments(w.namespace).Patch(t.Context(), "web", types.StrategicMergePatchType, patch, metav1.PatchOptions{}))(t)
	testenv.Eventually(t, "a new pod runs and the rollout is stuck with the old ones available", func() error {
		d, err := w.AppsV1().Deployments(w.namespace).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return errors.Join(
			expect("observedGeneration", d.Status.ObservedGeneration, d.Generation),
			expect("updatedReplicas", d.Status.UpdatedReplicas, 1),
			expect("unavailableReplicas", d.Status.UnavailableReplicas, 1),
			expect("availableReplicas", d.Status.AvailableReplicas, 2),
		)
	})
}

func TestStatefulSetIsOrdered(t *testing.T) {
	w := newWorld(t)
	pods := w.CoreV1().Pods(w.namespace)
	changes := must(pods.Watch(t.Context(), metav1.ListOptions{LabelSelector: "app=db"}))(t)
	defer changes.Stop()

	labels := map[string]string{"app": "db"}
	replicas := int32(3)
	must(w.AppsV1().StatefulSets(w.namespace).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Replicas:    &replicas,
			ServiceName: "db",
			Selector:    &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{container("db:1")}},
			},
		},
	}, metav1.CreateOptions{}))(t)

	var story []string
	for len(story) < 6 {
		change := next(t, changes)
		pod, ok := change.Object.(*corev1.Pod)
		if !ok {
			t.Fatalf("the watch reports %+v after %q", change, story)
		}
		switch told := pod.Name + " ready"; {
		case change.Type == watch.Added:
			story = append(story, pod.Name+" created")
		case isReady(pod) && !slices.Contains(story, told):
			story = append(story, told)
		}
	}
	want := []string{"db-0 created", "db-0 ready", "db-1 created", "db-1 ready", "db-2 created", "db-2 ready"}
	if !slices.Equal(story, want) {
		t.Errorf("what happened:\n%q, not\n%q", story, want)
	}

	before := must(pods.Get(t.Context(), "db-1", metav1.GetOptions{}))(t)
	try(t, pods.Delete(t.Context(), "db-1", metav1.DeleteOptions{}))
	testenv.Eventually(t, "another pod has taken the name", func() error {
		now, err := pods.Get(t.Context(), "db-1", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if now.UID == before.UID || !isReady(now) {
			return errors.New("it is the old one or not ready")
		}
		return nil
	})
}

func isReady(pod *corev1.Pod) bool {
	return conditionOf(pod, corev1.PodReady).Status == corev1.ConditionTrue
}

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return corev1.PodCondition{}
}

func job(name, behaviour string, backoffLimit int32) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			BackoffLimit: &backoffLimit,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: behaving(behaviour)},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers:    []corev1.Container{container("job:1")},
				},
			},
		},
	}
}

// awaitJob waits until the Job has one of its final conditions.
func (w *world) awaitJob(t *testing.T, name string, kind batchv1.JobConditionType) (*batchv1.Job, batchv1.JobCondition) {
	t.Helper()
	var j *batchv1.Job
	var found batchv1.JobCondition
	testenv.Eventually(t, fmt.Sprintf("Job %s is %s", name, kind), func() (err error) {
		if j, err = w.BatchV1().Jobs(w.namespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		for _, condition := range j.Status.Conditions {
			if condition.Type == kind && condition.Status == corev1.ConditionTrue {
				found = condition
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", j.Status.Conditions)
	})
	return j, found
}

func TestJobCompletes(t *testing.T) {
	w := newWorld(t)
	completions, parallelism := int32(3), int32(2)
	j := job("work", "", 0)
	j.Spec.Completions, j.Spec.Parallelism = &completions, &parallelism
	must(w.BatchV1().Jobs(w.namespace).Create(t.Context(), j, metav1.CreateOptions{}))(t)
	j, _ = w.awaitJob(t, "work", batchv1.JobComplete)
	if j.Status.Succeeded != completions || j.Status.Failed != 0 || j.Status.CompletionTime == nil {
		t.Errorf("its status is %+v", j.Status)
	}
}

func TestJobFails(t *testing.T) {
	w := newWorld(t)
	must(w.BatchV1().Jobs(w.namespace).Create(t.Context(), job("broken", "exit=3", 0), metav1.CreateOptions{}))(t)
	j, failed := w.awaitJob(t, "broken", batchv1.JobFailed)
	if failed.Reason != batchv1.JobReasonBackoffLimitExceeded || j.Status.Failed != 1 {
		t.Errorf("it failed for %s, with %d failed pods", failed.Reason, j.Status.Failed)
	}
}
