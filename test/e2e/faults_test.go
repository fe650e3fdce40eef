// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/freeport"
	"github.com/opdock/opdock/internal/testenv"
)

// These tests break what a control plane needs and look at what it says. Each has clusters of its own, in the
// home that all tests of this package share.

// clusterName makes a name for a cluster of this test alone, and of this run of it. Its state goes with the test.
func clusterName(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-", "Test", "").Replace(t.Name()))
	name = fmt.Sprintf("%s-%d", name[:min(len(name), 34)], clustersNamed.Add(1))
	t.Cleanup(func() {
		if err := cluster.Delete(name); err != nil {
			t.Error(err)
		}
	})
	return name
}

var clustersNamed atomic.Int32

func stateDir(name string) string { return filepath.Join(cluster.Home(), "clusters", name) }

// start starts a cluster that ends with the test, whatever happens.
func start(t *testing.T, o cluster.Options) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Start(within(t), o)
	if err != nil {
		t.Fatalf("starting %q: %v", o.Name, err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	return c
}

// refuses checks that a start fails for one reason, with a message that says something about it and a hint.
func refuses(t *testing.T, o cluster.Options, reason cluster.Reason, says ...string) {
	t.Helper()
	c, err := cluster.Start(within(t), o)
	var refusal *cluster.StartError
	switch {
	case err == nil:
		_ = c.Stop()
		t.Fatalf("it started; it should say %s", reason)
	case !errors.As(err, &refusal):
		t.Fatalf("without a reason it said: %v", err)
	case refusal.Reason != reason || refusal.Hint == "":
		t.Fatalf("for the reason %s it said %q and %q, not %s", refusal.Reason, refusal.Message, refusal.Hint, reason)
	}
	for _, word := range says {
		if !strings.Contains(refusal.Message, word) {
			t.Errorf("%q is not in: %s", word, refusal.Message)
		}
	}
	if o.Name == "" || reason == cluster.ReasonLocked {
		return
	}
	if status := must(cluster.Find(o.Name))(t); status.State != cluster.Stopped && status.State != cluster.NeverStarted {
		t.Errorf("a cluster that refused to start is %s", status.State)
	}
}

// template is the state of a stopped cluster with a ConfigMap in it, made once for all tests that break it.
var template struct {
	once sync.Once
	dir  string
	err  error
}

const (
	templateName = "template"
	keptName     = "keep"
)

func makeTemplate(t *testing.T) {
	t.Helper()
	c, err := cluster.Start(within(t), cluster.Options{Name: templateName})
	if err != nil {
		template.err = err
		return
	}
	_, err = clientFor(t, c.Config()).CoreV1().ConfigMaps("default").Create(t.Context(), configMap(keptName), metav1.CreateOptions{})
	template.dir, template.err = c.Dir(), errors.Join(err, c.Stop())
}

// stopped gives the test a stopped cluster of its own, with state, and returns its name and folder.
func stopped(t *testing.T) (name, dir string) {
	t.Helper()
	template.once.Do(func() { makeTemplate(t) })
	try(t, template.err)
	name = clusterName(t)
	dir = stateDir(name)
	try(t, os.CopyFS(dir, os.DirFS(template.dir)))
	try(t, os.Chmod(dir, 0o700)) // which a copy does not keep
	editState(t, dir, "port", strconv.Itoa(must(freeport.Find())(t)))
	return name, dir
}

// editState changes one value in state.json and leaves everything else as it was written.
func editState(t *testing.T, dir, field, value string) {
	t.Helper()
	path := filepath.Join(dir, "state.json")
	setting := regexp.MustCompile(fmt.Sprintf(`(%q: *)("[^"]*"|\d+)`, field))
	before := must(os.ReadFile(path))(t)
	if !setting.Match(before) {
		t.Fatalf("there is no %s in %s", field, before)
	}
	try(t, os.WriteFile(path, setting.ReplaceAll(before, []byte("${1}"+value)), 0o600))
}

// keeps checks that what was in the cluster is still there.
func keeps(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	if _, err := clientFor(t, c.Config()).CoreV1().ConfigMaps("default").Get(t.Context(), keptName, metav1.GetOptions{}); err != nil {
		t.Errorf("what was in it: %v", err)
	}
}

// fingerprint is what is in the files of a state folder that hold state: not the log, and not the kubeconfig,
// which is written at each start.
func fingerprint(t *testing.T, dir string) map[string]string {
	t.Helper()
	prints := map[string]string{}
	for _, part := range []string{"etcd", "pki", "state.json"} {
		try(t, filepath.WalkDir(filepath.Join(dir, part), func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			name, _ := filepath.Rel(dir, path)
			prints[name] = fmt.Sprintf("%d bytes %x", len(data), sha256.Sum256(data))
			return err
		}))
	}
	return prints
}

// unchanged runs something and checks that the state is afterwards what it was before, byte for byte.
func unchanged(t *testing.T, dir string, during func()) {
	t.Helper()
	before := fingerprint(t, dir)
	during()
	after := fingerprint(t, dir)
	if len(before) == 0 {
		t.Error("there is no state to be compared")
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] != before[name] {
			t.Errorf("%s was %s and is %q", name, before[name], after[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, known := before[name]; !known {
			t.Errorf("%s is new", name)
		}
	}
}

// occupy takes a port of the loopback address until the test or the returned function ends it.
func occupy(t *testing.T) (port int, free func()) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(must(freeport.Find())(t))))
	try(t, err)
	free = func() { _ = listener.Close() }
	t.Cleanup(free)
	return listener.Addr().(*net.TCPAddr).Port, free
}

func TestPortTaken(t *testing.T) {
	testenv.ControlPlane(t)
	t.Parallel()
	port, _ := occupy(t)
	name := clusterName(t)
	refuses(t, cluster.Options{Name: name, Port: port}, cluster.ReasonPortTaken, strconv.Itoa(port))
	if status := must(cluster.Find(name))(t); status.State != cluster.NeverStarted {
		t.Errorf("a cluster that never started leaves state behind: %+v", status)
	}
}

func TestRememberedPortTaken(t *testing.T) {
	testenv.ControlPlane(t)
	t.Parallel()
	name, dir := stopped(t)
	port, free := occupy(t)
	editState(t, dir, "port", strconv.Itoa(port))
	unchanged(t, dir, func() {
		refuses(t, cluster.Options{Name: name}, cluster.ReasonPortTaken, strconv.Itoa(port))
	})
	free()
	c := start(t, cluster.Options{Name: name})
	keeps(t, c)
	if want := fmt.Sprintf("https://127.0.0.1:%d", port); c.Config().Host != want {
		t.Errorf("it moved from %s to %s", want, c.Config().Host)
	}
}

func TestNewerState(t *testing.T) {
	testenv.ControlPlane(t)
	t.Parallel()
	name, dir := stopped(t)
	for _, test := range []struct{ field, newer, says, now string }{
		{"format", "99", "99", "1"},
		{"kubernetes", `"v1.99.0"`, "v1.99.0", strconv.Quote(cluster.KubernetesVersion)},
	} {
		editState(t, dir, test.field, test.newer)
		unchanged(t, dir, func() { refuses(t, cluster.Options{Name: name}, cluster.ReasonNewerState, dir, test.says) })
		editState(t, dir, test.field, test.now)
	}
	keeps(t, start(t, cluster.Options{Name: name}))
}

func TestTwoStartsAtOnce(t *testing.T) {
	testenv.ControlPlane(t)
	t.Parallel()
	name := clusterName(t)
	const rivals = 3
	clusters, failures := make([]*cluster.Cluster, rivals), make([]error, rivals)
	var racing sync.WaitGroup
	for i := range rivals {
		racing.Go(func() { clusters[i], failures[i] = cluster.Start(t.Context(), cluster.Options{Name: name}) })
	}
	racing.Wait()
	started := 0
	for i := range rivals {
		if failures[i] == nil {
			started++
			t.Cleanup(func() { _ = clusters[i].Stop() })
			if _, err := clientFor(t, clusters[i].Config()).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
				t.Errorf("the one that started does not work: %v", err)
			}
			continue
		}
		var refusal *cluster.StartError
		if !errors.As(failures[i], &refusal) || refusal.Reason != cluster.ReasonLocked || refusal.Hint == "" {
			t.Errorf("the slower one says %v", failures[i])
		}
	}
	if started != 1 {
		t.Errorf("%d of %d started", started, rivals)
	}
	refuses(t, cluster.Options{Name: name}, cluster.ReasonLocked, name)
}

func TestTwoClustersSideBySide(t *testing.T) {
	testenv.ControlPlane(t)
	t.Parallel()
	first := start(t, cluster.Options{Name: clusterName(t)})
	second := start(t, cluster.Options{Name: clusterName(t), Nodes: 3, Durable: true})
	if first.Config().Host == second.Config().Host {
		t.Fatalf("both are at %s", first.Config().Host)
	}
	maps := clientFor(t, first.Config()).CoreV1().ConfigMaps("default")
	must(maps.Create(t.Context(), configMap("mine"), metav1.CreateOptions{}))(t)
	others := clientFor(t, second.Config())
	if _, err := others.CoreV1().ConfigMaps("default").Get(t.Context(), "mine", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("looking for it in the other cluster: %v", err)
	}
	if nodes := must(others.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}))(t); len(nodes.Items) != 3 {
		t.Errorf("the second has %d nodes", len(nodes.Items))
	}
	// The administrator of one has no rights in the other.
	stranger := first.Config()
	stranger.Host, stranger.CAData = second.Config().Host, second.Config().CAData
	if _, err := clientFor(t, stranger).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("the second lets the first one's administrator in: %v", err)
	}

	try(t, first.Stop())
	if _, err := others.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("after the first has stopped: %v", err)
	}
	states := map[string]cluster.State{}
	for _, status := range must(cluster.List())(t) {
		states[status.Name] = status.State
	}
	if states[first.Name()] != cluster.Stopped || states[second.Name()] != cluster.Alive {
		t.Errorf("they are %v", states)
	}
}
