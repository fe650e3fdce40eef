// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster starts, stops and finds Kubernetes control planes. Each one is a single process.
//
// [Start] runs the opdock-controlplane binary and returns once a Deployment could become Available:
//
//	c, err := cluster.Start(ctx, cluster.Options{})
//	if err != nil {
//		return err
//	}
//	defer c.Stop()
//	client, err := kubernetes.NewForConfig(c.Config())
//
// The cluster has upstream's etcd, API server, controllers and scheduler with simulated nodes, so
// Deployments roll out, owned objects are garbage-collected and namespaces finish terminating. The
// package itself depends only on client-go: the control plane is another process, and the two
// communicate through flags, files and a kubeconfig.
//
// # Lifetime
//
// A cluster ends with the process that started it, however that process ends. The control plane holds
// the read end of a pipe, and only the starting process has the write end. When the kernel closes it,
// even after a panic or SIGKILL, the control plane stops, unless another process uses the cluster
// ([Cluster.Use]) or has kept it ([Cluster.Keep]). With [Options.Detach] a cluster outlives the
// process that started it, and other processes of the same user reach it with [Open], [Find] and
// [List].
//
// # State
//
// A cluster without a name is private: its state is in a temporary folder that is removed with it. The
// state of a cluster with a name is kept in [Home]/clusters/<name>, and the next Start with that name
// continues with it, unless [Options.Ephemeral] is set. Etcd does not wait for the disk unless
// [Options.Durable] is set: nothing is lost when a process is killed, but a power failure may lose the
// last writes.
//
// # Snapshots and forks
//
// [Cluster.Fork] starts a copy of a cluster. [Cluster.Save] writes its objects to a file, and
// [Options.From] starts a cluster from that file on any machine. Both copy one revision, and the
// original keeps running. A copy has its own keys.
//
// # Identities
//
// [Cluster.Config] is an administrator. [Cluster.As] is any other user, group or service account. Use
// it to run an operator with exactly the RBAC rules that it has in production.
//
// # The control plane binary
//
// [FindBinary] lists where the package searches for the binary. If there is none, Start compiles it
// once from source and keeps it in the user's cache folder. This takes minutes and needs a Go
// toolchain.
//
// Tests use the clustertest package: a test binary has one shared control plane, and each test has its
// own namespace or its own fork. Suites written for envtest need no change: set KUBEBUILDER_ASSETS to
// the folder that [Assets] returns.
package cluster
