// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/tree"
)

// fleetLog is where the fleet logs, in the state folder of its cluster.
const fleetLog = "fleet.log"

// reachTimeout is how long an API server may take for its first word.
const reachTimeout = 15 * time.Second

// target is the cluster that the fleet runs on.
type target struct {
	title     string
	config    *rest.Config
	namespace string
	// namespaces is where the fleet works: everywhere in a cluster of opdock's, and nowhere but in its namespace in one
	// that others use as well.
	namespaces []string
	// ours is false for a cluster that opdock did not make.
	ours    bool
	logPath string
	// ended says why the cluster is gone, and nil as long as it is there.
	ended func() error
	// done is closed when the cluster ends; nil if nobody can tell.
	done <-chan struct{}
	// leave leaves the cluster as it was found.
	leave func() error
}

func (a *App) findTarget(ctx context.Context, cmd *cobra.Command, o runOptions) (*target, error) {
	if o.foreign() {
		return a.foreignTarget(o.whichCluster, cmd.Flags().Changed("namespace"))
	}
	c, leave, err := a.openCluster(ctx, o.whichCluster)
	if err != nil {
		return nil, err
	}
	status, err := a.Dock.Find(o.name)
	if err != nil {
		return nil, errors.Join(err, leave())
	}
	t := &target{
		title: fmt.Sprintf("cluster %q", o.name), namespace: o.namespace, ours: true,
		logPath: filepath.Join(status.Dir, fleetLog), done: c.Done(),
		ended: func() error { return a.endOf(o.name) }, leave: leave,
	}
	t.config, _, err = a.loadKubeconfig(c.Kubeconfig(), "")
	if err != nil {
		return nil, errors.Join(err, t.leave())
	}
	return t, nil
}

func (a *App) foreignTarget(w whichCluster, namespaceGiven bool) (*target, error) {
	t := &target{namespace: w.namespace, ended: func() error { return nil }, leave: func() error { return nil }}
	config, loaded, err := a.loadKubeconfig(w.kubeconfig, w.context)
	if err != nil {
		return nil, err
	}
	t.config, t.title = config, config.Host
	if namespace, _, err := loaded.Namespace(); err == nil && !namespaceGiven {
		t.namespace = namespace
	}
	t.namespaces = []string{t.namespace}
	// One for each place that the fleet can work in.
	t.logPath = filepath.Join(a.Dock.Home(), "fleets", fileNameOf(config)+"-"+t.namespace+".log")
	return t, nil
}

var notInFileNames = regexp.MustCompile(`[^a-zA-Z0-9.]+`)

// fileNameOf is a cluster's address as a file can be called.
func fileNameOf(config *rest.Config) string {
	return strings.Trim(notInFileNames.ReplaceAllString(strings.TrimPrefix(config.Host, "https://"), "-"), "-")
}

// loadKubeconfig reads a kubeconfig: the given one, or else what the environment says.
func (a *App) loadKubeconfig(path, contextName string) (*rest.Config, clientcmd.ClientConfig, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: path}
	if path == "" {
		rules.Precedence = filepath.SplitList(a.getenv("KUBECONFIG"))
		if len(rules.Precedence) == 0 {
			rules.Precedence = []string{filepath.Join(a.getenv("HOME"), ".kube", "config")}
		}
	}
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: contextName})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, nil, withHints(fmt.Errorf("this kubeconfig cannot be used: %w", err),
			"give another with --kubeconfig, or another context of it with --context")
	}
	// The server's priority and fairness limits requests; a second limit here would only slow down the start.
	config.QPS = -1
	return config, loaded, nil
}

// reach finds out whether the API server answers and the namespace can be used.
func (t *target) reach(ctx context.Context) error {
	if err := t.answers(); err != nil {
		return err
	}
	return t.ensureNamespace(ctx)
}

// answers finds out whether the API server answers.
func (t *target) answers() error {
	quick := rest.CopyConfig(t.config)
	quick.Timeout = reachTimeout
	server, err := discovery.NewDiscoveryClientForConfig(quick)
	if err != nil {
		return withHints(fmt.Errorf("this kubeconfig cannot be used: %w", err), "give another with --kubeconfig, or another context of it with --context")
	}
	if _, err := server.ServerVersion(); err != nil {
		return withHints(fmt.Errorf("the API server at %s cannot be used: %w", t.config.Host, err),
			"is it running, and does the kubeconfig belong to it?")
	}
	return nil
}

func (t *target) ensureNamespace(ctx context.Context) error {
	server, err := kubernetes.NewForConfig(t.config)
	if err != nil {
		return err
	}
	namespace, err := server.CoreV1().Namespaces().Get(ctx, t.namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && t.ours {
		namespace, err = server.CoreV1().Namespaces().Create(ctx,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.namespace}}, metav1.CreateOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return withHints(fmt.Errorf("there is no namespace %q on %s", t.namespace, t.title),
			"make it: kubectl create namespace "+t.namespace, "or choose another: --namespace")
	case err != nil:
		return fmt.Errorf("looking for namespace %s: %w", t.namespace, err)
	case namespace.Status.Phase == corev1.NamespaceTerminating:
		return withHints(fmt.Errorf("namespace %q is being deleted", t.namespace), "wait until it is gone, or choose another: --namespace")
	}
	return nil
}

// watch fills the model and keeps it up to date.
func (t *target) watch(ctx context.Context, model *tree.Model, changes *page.Changes) error {
	from, err := treeSources()
	if err != nil {
		return err
	}
	from.Changed = changes.Observe
	from.Namespaces = t.namespaces
	return tree.Watch(ctx, t.config, from, model)
}

// treeSources are the kinds of the fleet and all that comes of them.
func treeSources() (tree.Sources, error) {
	from := tree.Sources{
		// Deployments give this label to their ReplicaSets and pods as well.
		Labels: labels.SelectorFromSet(labels.Set{flow.LabelManagedBy: flow.ManagedBy}),
		Fleet:  map[schema.GroupVersionKind]tree.Columns{},
	}
	var err error
	if from.Scheme, err = controller.NewScheme(); err != nil {
		return from, err
	}
	definitions, err := controller.CRDs(controller.Kinds)
	if err != nil {
		return from, err
	}
	children := []client.Object{&appsv1.ReplicaSet{}, &corev1.Pod{}}
	for i, kind := range controller.Kinds {
		if from.Fleet[kind.GroupVersionKind], err = tree.ColumnsOf(definitions[i], kind.Version); err != nil {
			return from, err
		}
		children = append(children, kind.Children...)
	}
	known := map[schema.GroupVersionKind]bool{}
	for _, child := range children {
		gvk, err := apiutil.GVKForObject(child, from.Scheme)
		if err != nil {
			return from, err
		}
		if _, fleet := from.Fleet[gvk]; !fleet && !known[gvk] {
			known[gvk] = true
			from.Children = append(from.Children, child)
		}
	}
	return from, nil
}
