// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client is the parent of the packages with which Go programs work with the kinds of the fleet. They have the
// layout of k8s.io/client-go, so that who knows that one knows this one:
//
//   - clientset/versioned sends requests: Create, Get, List, Update, Patch, Apply, Delete, Watch, and the scale
//     subresource of the kinds that have a count.
//   - clientset/versioned/fake is the same without a server, for unit tests.
//   - applyconfiguration holds what Apply takes: objects of which only the fields are sent that were set. Its Extract
//     functions give back the fields that a field manager owns. Structs that several kinds share are in
//     applyconfiguration/shared/v1.
//   - informers/externalversions watches objects, keeps them in memory and calls handlers when they change.
//   - listers reads from that memory; an informer's method Lister gives one.
//
// Each has an example. A group goes by the first part of its name, also where its folder has another:
//
//	AppV1, AppV1alpha1   AppServices   app.example.com
//	KubegroupV1          PodClusters   kubegroup.generals.space
//	RobotV1              Robots        robot.llleon.io
//	CollectorV1          Collectors    collector.ip
//	KanggegeV1           KAPPs         kanggege.k8sio.com, in folders called kapp
//
// Except for this file and the tests, all of it is generated from the types in api, by the go:generate line there.
package client
