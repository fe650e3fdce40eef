// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// WatchEnd returns a channel that is closed when the cluster ends. Only whoever has started a cluster is told; others
// have to look now and then.
func (a *App) WatchEnd(c Running, name string) (done <-chan struct{}, stop func()) {
	if done := c.Done(); done != nil {
		return done, func() {}
	}
	ended, quit := make(chan struct{}), make(chan struct{})
	go func() {
		ticker := time.NewTicker(AliveInterval)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
				if a.EndOf(name) != nil {
					close(ended)
					return
				}
			}
		}
	}()
	return ended, sync.OnceFunc(func() { close(quit) })
}

// AliveInterval is how often a run looks whether a cluster that it did not start is still there.
const AliveInterval = 2 * time.Second

// reachTimeout is how long an API server may take for its first word.
const reachTimeout = 15 * time.Second

// Target is the cluster that the fleet runs on.
type Target struct {
	Title     string
	Config    *rest.Config
	Namespace string
	// namespaces is where the fleet works: everywhere in a cluster of opdock's, and nowhere but in its namespace in one
	// that others use as well.
	Namespaces []string
	// ours is false for a cluster that opdock did not make.
	Ours    bool
	LogPath string
	// ended says why the cluster is gone, and nil as long as it is there.
	Ended func() error
	// done is closed when the cluster ends; nil if nobody can tell.
	Done <-chan struct{}
	// leave leaves the cluster as it was found.
	Leave func() error
}

func (a *App) ForeignTarget(w WhichCluster, namespaceGiven bool) (*Target, error) {
	t := &Target{Namespace: w.Namespace, Ended: func() error { return nil }, Leave: func() error { return nil }}
	config, loaded, err := a.LoadKubeconfig(w.Kubeconfig, w.Context)
	if err != nil {
		return nil, err
	}
	t.Config, t.Title = config, config.Host
	if namespace, _, err := loaded.Namespace(); err == nil && !namespaceGiven {
		t.Namespace = namespace
	}
	t.Namespaces = []string{t.Namespace}
	// One for each place that the fleet can work in.
	t.LogPath = filepath.Join(a.Dock.Home(), "fleets", FileNameOf(config)+"-"+t.Namespace+".log")
	return t, nil
}

var notInFileNames = regexp.MustCompile(`[^a-zA-Z0-9.]+`)

// FileNameOf is a cluster's address as a file can be called.
func FileNameOf(config *rest.Config) string {
	return strings.Trim(notInFileNames.ReplaceAllString(strings.TrimPrefix(config.Host, "https://"), "-"), "-")
}

// LoadKubeconfig reads a kubeconfig: the given one, or else what the environment says.
func (a *App) LoadKubeconfig(path, contextName string) (*rest.Config, clientcmd.ClientConfig, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: path}
	if path == "" {
		rules.Precedence = filepath.SplitList(a.Getenv("KUBECONFIG"))
		if len(rules.Precedence) == 0 {
			rules.Precedence = []string{filepath.Join(a.Getenv("HOME"), ".kube", "config")}
		}
	}
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: contextName})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, nil, WithHints(fmt.Errorf("this kubeconfig cannot be used: %w", err),
			"give another with --kubeconfig, or another context of it with --context")
	}
	// The server's priority and fairness limits requests; a second limit here would only slow down the start.
	config.QPS = -1
	return config, loaded, nil
}

// Reach finds out whether the API server answers and the namespace can be used.
func (t *Target) Reach(ctx context.Context) error {
	if err := t.Answers(); err != nil {
		return err
	}
	return t.ensureNamespace(ctx)
}

// Answers finds out whether the API server answers.
func (t *Target) Answers() error {
	quick := rest.CopyConfig(t.Config)
	quick.Timeout = reachTimeout
	server, err := discovery.NewDiscoveryClientForConfig(quick)
	if err != nil {
		return WithHints(fmt.Errorf("this kubeconfig cannot be used: %w", err), "give another with --kubeconfig, or another context of it with --context")
	}
	if _, err := server.ServerVersion(); err != nil {
		return WithHints(fmt.Errorf("the API server at %s cannot be used: %w", t.Config.Host, err),
			"is it running, and does the kubeconfig belong to it?")
	}
	return nil
}

func (t *Target) ensureNamespace(ctx context.Context) error {
	server, err := kubernetes.NewForConfig(t.Config)
	if err != nil {
		return err
	}
	namespace, err := server.CoreV1().Namespaces().Get(ctx, t.Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && t.Ours {
		namespace, err = server.CoreV1().Namespaces().Create(ctx,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.Namespace}}, metav1.CreateOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return WithHints(fmt.Errorf("there is no namespace %q on %s", t.Namespace, t.Title),
			"make it: kubectl create namespace "+t.Namespace, "or choose another: --namespace")
	case err != nil:
		return fmt.Errorf("looking for namespace %s: %w", t.Namespace, err)
	case namespace.Status.Phase == corev1.NamespaceTerminating:
		return WithHints(fmt.Errorf("namespace %q is being deleted", t.Namespace), "wait until it is gone, or choose another: --namespace")
	}
	return nil
}
