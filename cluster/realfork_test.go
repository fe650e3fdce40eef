// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/testenv"
)

func putConfigMap(t *testing.T, client kubernetes.Interface, name, value string) *corev1.ConfigMap {
	t.Helper()
	maps := client.CoreV1().ConfigMaps("default")
	made, err := maps.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": value},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		made, err = maps.Update(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": value},
		}, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// valueOf returns the value of a ConfigMap, and "" if there is none.
func valueOf(t *testing.T, client kubernetes.Interface, name string) string {
	t.Helper()
	found, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return found.Data["value"]
}

func TestRealFork(t *testing.T) {
	needsControlPlane(t)
	original := startReal(t, cluster.Options{Nodes: 2, AdmissionPlugins: []string{"AlwaysPullImages"}})
	before := clientFor(t, original.Config())
	first := putConfigMap(t, before, "kept", "one")
	putConfigMap(t, before, "kept", "two")
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	if _, err := before.CoreV1().Secrets("default").Create(t.Context(), token, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	tokenIn := func(client kubernetes.Interface) string {
		secret, err := client.CoreV1().Secrets("default").Get(t.Context(), "token", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return string(secret.Data["token"])
	}
	testenv.Eventually(t, "the token is there", func() bool { return tokenIn(before) != "" })

	fork, err := original.Fork(t.Context(), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer fork.Stop()
	after := clientFor(t, fork.Config())
	if fork.Config().Host == original.Config().Host || fork.Dir() == original.Dir() {
		t.Errorf("the fork is at %s in %s", fork.Config().Host, fork.Dir())
	}
	if got := valueOf(t, after, "kept"); got != "two" {
		t.Errorf("the fork has %q", got)
	}
	same, err := after.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil || same.UID != first.UID {
		t.Errorf("another object: %v, %v", same, err)
	}
	old, err := after.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{
		ResourceVersion: first.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	})
	if err != nil || len(old.Items) == 0 || !strings.Contains(fmt.Sprint(old.Items), "value:one") {
		t.Errorf("an old revision in the fork: %v", err)
	}
	nodes, err := after.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 2 {
		t.Errorf("%d nodes, %v", len(nodes.Items), err)
	}

	// Neither sees what happens in the other.
	putConfigMap(t, after, "fork", "x")
	putConfigMap(t, before, "original", "x")
	if valueOf(t, before, "fork") != "" || valueOf(t, after, "original") != "" {
		t.Error("one cluster sees an object of the other")
	}
	// Nor do the keys of one open the other.
	crossed := original.Config()
	crossed.Host = fork.Config().Host
	if _, err := clientFor(t, crossed).CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("the certificate of the original opens the fork")
	}
	testenv.Eventually(t, "the fork signs tokens itself", func() bool {
		now := tokenIn(after)
		return now != "" && now != tokenIn(before)
	})
	// Pods run in it, and the admission plugins are those of the original.
	pod, err := after.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i:1", ImagePullPolicy: "Never"}}},
	}, metav1.CreateOptions{})
	if err != nil || pod.Spec.Containers[0].ImagePullPolicy != corev1.PullAlways {
		t.Errorf("AlwaysPullImages is not at work: %v, %v", pod, err)
	}
	testenv.Eventually(t, "a pod runs in the fork", func() bool {
		pod, err := after.CoreV1().Pods("default").Get(t.Context(), "pod", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning
	})
	if err := original.Stop(); err != nil {
		t.Error(err)
	}
	putConfigMap(t, after, "alone", "x")
}

// TestRealHistory has a short history: an old revision can be read at first, and gets a clear answer later.
func TestRealHistory(t *testing.T) {
	needsControlPlane(t)
	client := clientFor(t, startReal(t, cluster.Options{History: time.Second}).Config())
	var old *corev1.ConfigMap
	read := func() error {
		_, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{
			ResourceVersion: old.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		})
		return err
	}
	// Again and again, because a machine that is busy may take longer than the history to read it.
	testenv.Eventually(t, "a new revision can be read", func() error {
		old = putConfigMap(t, client, "kept", "one")
		return read()
	})
	testenv.Eventually(t, "the old revision is gone", func() bool {
		putConfigMap(t, client, "kept", "two") // there must be a newer one
		return apierrors.IsResourceExpired(read())
	})
}

func TestRealForkOfAFork(t *testing.T) {
	needsControlPlane(t)
	original := startReal(t, cluster.Options{Name: "dev"})
	putConfigMap(t, clientFor(t, original.Config()), "kept", "one")
	fork, err := original.Fork(t.Context(), cluster.Options{Name: "fork"})
	if err != nil {
		t.Fatal(err)
	}
	putConfigMap(t, clientFor(t, fork.Config()), "more", "two")
	if err := fork.Stop(); err != nil {
		t.Fatal(err)
	}
	// A fork with a name lasts as any other cluster does.
	again := startReal(t, cluster.Options{Name: "fork"})
	second, err := again.Fork(t.Context(), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Stop()
	client := clientFor(t, second.Config())
	if valueOf(t, client, "kept") != "one" || valueOf(t, client, "more") != "two" {
		t.Error("the fork of the fork lacks something")
	}
	// The name of a cluster that has objects is not taken.
	var kept *cluster.StartError
	if err := again.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := original.Fork(t.Context(), cluster.Options{Name: "fork"}); !errors.As(err, &kept) || kept.Reason != cluster.ReasonKeptState {
		t.Errorf("a fork over existing objects: %v", err)
	}
}

func TestRealSnapshot(t *testing.T) {
	needsControlPlane(t)
	original := startReal(t, cluster.Options{Name: "dev"})
	client := clientFor(t, original.Config())
	putConfigMap(t, client, "kept", "one")
	path := filepath.Join(t.TempDir(), "base.snapshot")
	saved, err := original.Save(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if saved.Cluster != "dev" || saved.Kubernetes != cluster.KubernetesVersion || saved.Revision == 0 || saved.Objects < 50 {
		t.Errorf("saved %+v", saved)
	}
	putConfigMap(t, client, "kept", "two")
	putConfigMap(t, client, "later", "x")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	// A new cluster from the file.
	copied := startReal(t, cluster.Options{From: path})
	if now := clientFor(t, copied.Config()); valueOf(t, now, "kept") != "one" || valueOf(t, now, "later") != "" {
		t.Error("the new cluster is not what was saved")
	}

	// The file's objects instead of those that a cluster has.
	if err := original.Stop(); err != nil {
		t.Fatal(err)
	}
	var refused *cluster.StartError
	if _, err := cluster.Start(t.Context(), cluster.Options{Name: "dev", From: path}); !errors.As(err, &refused) || refused.Reason != cluster.ReasonKeptState {
		t.Errorf("without Replace: %v", err)
	}
	for name, bad := range map[string][]byte{
		"cut":   content[:len(content)/2],
		"wrong": []byte("kind: List\n"),
		"newer": []byte(strings.Replace(string(content), "opdock-snapshot/1", "opdock-snapshot/2", 1)),
	} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := cluster.Start(t.Context(), cluster.Options{Name: "dev", From: file, Replace: true})
		want := cluster.ReasonBadSnapshot
		if name == "newer" {
			want = cluster.ReasonNewerState
		}
		if !errors.As(err, &refused) || refused.Reason != want || refused.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := cluster.Start(t.Context(), cluster.Options{From: file}); err == nil {
			t.Errorf("%s: a new cluster starts", name)
		}
	}
	unharmed := startReal(t, cluster.Options{Name: "dev"})
	if valueOf(t, clientFor(t, unharmed.Config()), "kept") != "two" {
		t.Error("a snapshot that cannot be used has changed the cluster")
	}
	if err := unharmed.Stop(); err != nil {
		t.Fatal(err)
	}
	restored := startReal(t, cluster.Options{Name: "dev", From: path, Replace: true})
	// The keys are the same, so the old client still works.
	if restored.Config().Host != original.Config().Host || valueOf(t, client, "kept") != "one" || valueOf(t, client, "later") != "" {
		t.Error("the cluster is not what was saved")
	}
	entries, err := filepath.Glob(filepath.Join(restored.Dir(), "etcd*"))
	if err != nil || len(entries) != 2 { // etcd and etcd.sock
		t.Errorf("in the state folder: %q, %v", entries, err)
	}
}

func TestRealAdmissionPlugins(t *testing.T) {
	needsControlPlane(t)
	var refused *cluster.StartError
	_, err := cluster.Start(t.Context(), cluster.Options{Name: "dev", AdmissionPlugins: []string{"Nonsense"}})
	if !errors.As(err, &refused) || refused.Reason != cluster.ReasonBadOption || !strings.Contains(err.Error(), "Nonsense") {
		t.Errorf("an unknown plugin: %v", err)
	}
	c := startReal(t, cluster.Options{Name: "dev", AdmissionPlugins: []string{"OwnerReferencesPermissionEnforcement"}})
	owner := putConfigMap(t, clientFor(t, c.Config()), "owner", "x")
	allow(t, c, "operator", "configmaps", "create", "update", "get")
	identity, err := c.As("operator")
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	_, err = clientFor(t, identity.Config()).CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &yes},
		}},
	}, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("blockOwnerDeletion without the right to finalizers: %v", err)
	}
}

// allow gives a user rights on a resource of the core group.
func allow(t *testing.T, c *cluster.Cluster, user, resource string, verbs ...string) {
	t.Helper()
	roles := clientFor(t, c.Config()).RbacV1()
	_, err := roles.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: verbs}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = roles.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	identity, err := c.As(user)
	if err != nil {
		t.Fatal(err)
	}
	client := clientFor(t, identity.Config())
	testenv.Eventually(t, "the role counts", func() error {
		_, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "owner", metav1.GetOptions{})
		return err
	})
}
