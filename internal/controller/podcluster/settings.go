// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/workload"
)

// Defaults of the schema, for older objects without these fields.
const (
	defaultImage        = "nginx:1.29"
	defaultContainer    = "main"
	defaultReplicas     = 1
	defaultDeadline     = 600
	defaultHistoryLimit = 10
)

// settings are a spec in the form that the planner needs.
type settings struct {
	name              string
	replicas          int
	partition         int
	maxUnavailable    int
	onDelete, inPlace bool
	minReady          time.Duration
	deadline          time.Duration
	historyLimit      int
}

// settingsOf reads a spec. The schema admits none that is an error here, but may have been another when it was written.
func settingsOf(cluster *kubegroupv1.PodCluster) (settings, error) {
	spec := &cluster.Spec
	strategy := ptr.Deref(spec.UpdateStrategy, kubegroupv1.UpdateStrategy{})
	s := settings{
		name:         cluster.Name,
		replicas:     int(ptr.Deref(spec.PodReplicas, defaultReplicas)),
		partition:    int(ptr.Deref(strategy.Partition, 0)),
		minReady:     time.Duration(spec.MinReadySeconds) * time.Second,
		deadline:     time.Duration(ptr.Deref(spec.ProgressDeadlineSeconds, defaultDeadline)) * time.Second,
		historyLimit: int(ptr.Deref(spec.RevisionHistoryLimit, defaultHistoryLimit)),
	}
	var wrong []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	refuse(s.replicas < 0, "podReplicas is %d and must not be negative", s.replicas)
	refuse(s.partition < 0, "updateStrategy.partition is %d and must not be negative", s.partition)
	refuse(s.minReady < 0, "minReadySeconds is %d and must not be negative", spec.MinReadySeconds)
	refuse(s.deadline <= 0, "progressDeadlineSeconds is %v and must be greater than 0", s.deadline.Seconds())
	refuse(s.historyLimit < 0, "revisionHistoryLimit is %d and must not be negative", s.historyLimit)

	switch strategy.Type {
	case "", kubegroupv1.UpdateRolling:
	case kubegroupv1.UpdateOnDelete:
		s.onDelete = true
	default:
		refuse(true, "updateStrategy.type is %q and must be RollingUpdate or OnDelete", strategy.Type)
	}
	switch strategy.InPlace {
	case "", kubegroupv1.InPlaceIfPossible:
		s.inPlace = true
	case kubegroupv1.InPlaceNever:
	default:
		refuse(true, "updateStrategy.inPlace is %q and must be IfPossible or Never", strategy.InPlace)
	}
	maxUnavailable := ptr.Deref(strategy.MaxUnavailable, intstr.FromInt32(1))
	least, err := intstr.GetScaledValueFromIntOrPercent(&maxUnavailable, 100, false)
	refuse(err != nil || least < 1, "updateStrategy.maxUnavailable is %q and must be a number, at least 1, or a percentage from 1%%", maxUnavailable.String())
	if err == nil {
		scaled, _ := intstr.GetScaledValueFromIntOrPercent(&maxUnavailable, max(s.replicas, 0), false)
		// A small percentage of few pods would never let an update begin.
		s.maxUnavailable = max(scaled, 1)
	}
	return s, errors.Join(wrong...)
}

// templateOf returns the complete template, which a revision stores. It includes the image of the spec, unless all
// containers have their own, and the settings of the security profile.
func templateOf(spec *kubegroupv1.PodClusterSpec) (*sharedv1.PodTemplate, error) {
	template := spec.Template.DeepCopy()
	if template == nil {
		template = &sharedv1.PodTemplate{}
	}
	if len(template.Spec.Containers) == 0 {
		template.Spec.Containers = []sharedv1.Container{{Name: defaultContainer}}
	}
	image := spec.Image
	if image == "" {
		image = defaultImage
	}
	for _, containers := range [][]sharedv1.Container{template.Spec.Containers, template.Spec.InitContainers} {
		for i := range containers {
			if containers[i].Image == "" {
				containers[i].Image = image
			}
		}
	}
	return workload.Secure(template, spec.SecurityProfile)
}
