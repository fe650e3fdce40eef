// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster starts, stops and finds Kubernetes control planes that live in one process each.
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
// What that gives is the upstream etcd, API server, controllers and scheduler with simulated nodes, so
// Deployments roll out, owned objects are garbage-collected and namespaces finish terminating. The
// package itself needs nothing but client-go: the control plane is another process, and the two meet
// only as flags, files and a kubeconfig.
//
// # Whose life a cluster shares
//
// A cluster ends with the process that started it, however that process ends. The control plane holds
// the read end of a pipe whose write end only the starting process has; when the kernel closes that, be
// it after a panic or SIGKILL, the control plane stops by itself. With [Options.Detach] it outlives its
// starter, and [Open], [Find] and [List] give it to any other process of the same user.
//
// # Where its state is
//
// Without a name a cluster is private: its state is in a temporary folder that goes away with it. With
// a name the state is kept in [Home]/clusters/<name>, and the next Start with that name continues where
// the last one ended, unless [Options.Ephemeral] is set. Etcd does not wait for the disk unless
// [Options.Durable] is set: nothing is lost when a process is killed, but a power failure may lose the
// last writes.
//
// # Snapshots and forks
//
// [Cluster.Fork] starts another cluster with everything that one has, and [Cluster.Save] writes it to a
// file, which [Options.From] starts from on any machine. Both copy one revision, and neither stops the
// original nor keeps it from working. A copy has keys of its own.
//
// # Under which identity to act
//
// [Cluster.Config] is an administrator. [Cluster.As] gives any other user, group or service account, so
// that an operator can be tried under exactly the RBAC rules it will have in production.
//
// # Where the control plane binary comes from
//
// [FindBinary] says where it is looked for. If there is none, Start compiles it once from source, which
// takes some minutes and a Go toolchain, and keeps it in the user's cache folder.
//
// Tests use the clustertest package, which gives a test binary one shared control plane and each test a
// namespace of its own, or a fork of its own. Suites written for envtest can stay as they are: [Assets] is the folder to name
// in KUBEBUILDER_ASSETS.
package cluster
