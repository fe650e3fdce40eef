// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/opdock/opdock/cluster"
)

// patience is how long a start may take without any progress, and a controller for what it does at once. While
// the control plane is compiled there is some progress every second.
const patience = 2 * time.Minute

// requestTimeout is for single requests to an API server on the same machine.
const requestTimeout = 30 * time.Second

var shared struct {
	once    sync.Once
	cluster *cluster.Cluster
	log     string // path of the control plane's log
	err     error
}

// Shared returns the control plane that all tests of this test binary share. If it does not start, every
// test that calls Shared fails with the reason. Failing tests show the path of its log.
func Shared(t testing.TB) *cluster.Cluster {
	t.Helper()
	shared.once.Do(func() { shared.cluster, shared.log, shared.err = start() })
	if shared.err != nil {
		t.Fatalf("starting the control plane shared by the tests: %v", shared.err)
	}
	if _, again := watched.LoadOrStore(t, nil); !again {
		t.Cleanup(func() {
			watched.Delete(t)
			explainFailure(t)
		})
	}
	return shared.cluster
}

// watched holds the tests that print the path of the log if they fail, each of them once.
var watched sync.Map

func explainFailure(t testing.TB) {
	t.Helper()
	if !t.Failed() {
		return
	}
	t.Logf("the log of the control plane is %s", shared.log)
	if err := shared.cluster.Err(); err != nil {
		t.Logf("the control plane has stopped: %v", err)
	}
}

// Namespace creates a namespace in the shared control plane and returns its name once pods can be created
// in it. The namespace is deleted when the test ends. The test does not wait until it is gone.
func Namespace(t testing.TB) string {
	t.Helper()
	client, err := typedcorev1.NewForConfig(Shared(t).Config())
	if err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	made, err := client.Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: prefix(t.Name())},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	t.Cleanup(func() {
		// Not the test's context, which has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		err := client.Namespaces().Delete(ctx, made.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("deleting namespace %s: %v", made.Name, err)
		}
	})
	// A controller makes it, which may have a lot else to do.
	ctx, cancel = context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := awaitServiceAccount(ctx, client, made.Name); err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	return made.Name
}

// awaitServiceAccount waits for the default service account, which a controller creates in each namespace.
// Until then the API server refuses pods.
func awaitServiceAccount(ctx context.Context, client *typedcorev1.CoreV1Client, namespace string) error {
	for ctx.Err() == nil {
		watcher, err := client.ServiceAccounts(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=default"})
		if err != nil {
			return err
		}
		// A watch that ends early, as on a busy server, says nothing about the account.
		if reportsObject(watcher) {
			return nil
		}
	}
	return fmt.Errorf("waiting for its default service account: %w", ctx.Err())
}

// reportsObject reports whether a watch reports an object before it ends, and stops it.
func reportsObject(watcher watch.Interface) bool {
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if event.Type == watch.Added || event.Type == watch.Modified {
			return true
		}
	}
	return false
}

func start() (*cluster.Cluster, string, error) {
	log, err := openLog("")
	if err != nil {
		return nil, "", err
	}
	// The control plane has its own descriptor of it.
	defer log.Close()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	stuck := time.AfterFunc(patience, func() { cancel(fmt.Errorf("no progress for %v", patience)) })
	defer stuck.Stop()
	c, err := cluster.Start(ctx, cluster.Options{
		Log:      log,
		Progress: func(cluster.Progress) { stuck.Reset(patience) },
	})
	return c, log.Name(), err
}

// openLog returns a file that each run of the same test binary overwrites. The file still exists after a
// failure, a panic or a timeout, and old files do not pile up. A test with its own cluster has its own
// log.
func openLog(test string) (*os.File, error) {
	directory, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		// No home, as in a build sandbox, which is thrown away as a whole.
		return os.CreateTemp("", "opdock-test-*.log")
	}
	folder := filepath.Join(cache, "opdock", "testlogs")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	// go test runs each package's tests in that package's directory.
	sum := sha256.Sum256([]byte(directory))
	name := fmt.Sprintf("%s-%s%s.log", filepath.Base(directory), hex.EncodeToString(sum[:6]), test)
	// With O_APPEND, two concurrent runs can share the file without overwriting each other.
	return os.OpenFile(filepath.Join(folder, name), os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// prefix derives the start of a namespace's name from the name of the test.
func prefix(test string) string {
	const limit = 40 // of 63; the API server appends a suffix
	name := notInNames.ReplaceAllString(strings.ToLower(strings.TrimPrefix(test, "Test")), "-")
	name = strings.Trim(name[:min(len(name), limit)], "-")
	if name == "" {
		name = "test"
	}
	return name + "-"
}
