// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/hostpath"
)

// VolumeProvisioner is the provisioner that storage classes name to get
// simulated volumes.
const VolumeProvisioner = "opdock.dev/simulated"

// simulatedVolumes provisions and deletes volumes without changing the disk, because nothing
// mounts them. Upstream's host path plugin, which they resemble, creates and removes real
// folders with the rights of this user.
type simulatedVolumes struct {
	volume.VolumePlugin
}

func (simulatedVolumes) GetPluginName() string { return VolumeProvisioner }

func (simulatedVolumes) GetAccessModes() []corev1.PersistentVolumeAccessMode {
	return []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteMany, corev1.ReadOnlyMany}
}

func (simulatedVolumes) NewProvisioner(_ klog.Logger, o volume.VolumeOptions) (volume.Provisioner, error) {
	return simulatedProvisioner{o}, nil
}

func (simulatedVolumes) NewDeleter(_ klog.Logger, spec *volume.Spec) (volume.Deleter, error) {
	return &simulatedDeleter{name: spec.Name()}, nil
}

type simulatedProvisioner struct {
	options volume.VolumeOptions
}

func (p simulatedProvisioner) Provision(*corev1.Node, []corev1.TopologySelectorTerm) (*corev1.PersistentVolume, error) {
	claim := p.options.PVC.Spec
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: p.options.PVName},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: p.options.PersistentVolumeReclaimPolicy,
			AccessModes:                   claim.AccessModes,
			VolumeMode:                    claim.VolumeMode,
			MountOptions:                  p.options.MountOptions,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/simulated/" + p.options.PVName},
			},
		},
	}, nil
}

type simulatedDeleter struct {
	volume.MetricsNil
	name string
}

func (d *simulatedDeleter) GetPath() string { return d.name }

func (*simulatedDeleter) Delete() error { return nil }

// volumeController binds claims to volumes. It is upstream's, with our plugin in
// place of all of upstream's.
type volumeController struct {
	*persistentvolume.PersistentVolumeController
}

func (volumeController) Name() string { return names.PersistentVolumeBinderController }

func newVolumeController(ctx context.Context, c app.ControllerContext) (app.Controller, error) {
	client, err := c.NewClient("persistent-volume-binder")
	if err != nil {
		return nil, err
	}
	plugins := hostpath.ProbeVolumePlugins(volume.VolumeConfig{})
	if len(plugins) != 1 {
		return nil, fmt.Errorf("upstream has %d plugins for host paths, not one", len(plugins))
	}
	binder := c.ComponentConfig.PersistentVolumeBinderController
	controller, err := persistentvolume.NewController(ctx, persistentvolume.ControllerParameters{
		KubeClient:                client,
		SyncPeriod:                binder.PVClaimBinderSyncPeriod.Duration,
		VolumePlugins:             []volume.VolumePlugin{simulatedVolumes{plugins[0]}},
		VolumeInformer:            c.InformerFactory.Core().V1().PersistentVolumes(),
		ClaimInformer:             c.InformerFactory.Core().V1().PersistentVolumeClaims(),
		ClassInformer:             c.InformerFactory.Storage().V1().StorageClasses(),
		PodInformer:               c.InformerFactory.Core().V1().Pods(),
		NodeInformer:              c.InformerFactory.Core().V1().Nodes(),
		EnableDynamicProvisioning: binder.VolumeConfiguration.EnableDynamicProvisioning,
	})
	if err != nil {
		return nil, fmt.Errorf("building the volume controller: %w", err)
	}
	return volumeController{controller}, nil
}
