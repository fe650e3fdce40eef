// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"slices"

	kubeoptions "k8s.io/kubernetes/pkg/kubeapiserver/options"

	"github.com/opdock/opdock/controlplane/internal/fault"
)

// defaultPlugins are enabled beside upstream's defaults, as kubeadm does it.
var defaultPlugins = []string{"NodeRestriction"}

// choosePlugins decides which admission plugins are enabled beside the default
// ones: those that are asked for, else those that the cluster had.
func (p *plane) choosePlugins() error {
	info := &p.folder.Info
	if p.origin != nil && p.folder.New {
		info.AdmissionPlugins = p.origin.plugins
	}
	if p.options.AdmissionPlugins != nil {
		info.AdmissionPlugins = slices.DeleteFunc(slices.Clone(p.options.AdmissionPlugins), func(name string) bool { return name == "" })
	}
	if len(info.AdmissionPlugins) == 0 {
		return nil
	}
	// Asked before the folder remembers them: one that does not exist would keep
	// the cluster from ever starting again.
	known := kubeoptions.NewAdmissionOptions().GenericAdmission.Plugins.Registered()
	for _, name := range info.AdmissionPlugins {
		if !slices.Contains(known, name) {
			return &fault.Error{
				Reason:  fault.BadOption,
				Message: fmt.Sprintf("there is no admission plugin %q", name),
				Hint:    "use names of kube-apiserver's --enable-admission-plugins, such as OwnerReferencesPermissionEnforcement or AlwaysPullImages",
			}
		}
	}
	return nil
}
