// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
)

// tokenVolume is how the names of the volumes begin that the server adds for the token of a ServiceAccount.
const tokenVolume = "kube-api-access-"

// serverDefaults are the values of fields that the server fills in, as in JSON. An empty object is a default as well.
var serverDefaults = map[string][]any{
	"apiVersion":                    {"v1"},
	"defaultMode":                   {420.0},
	"dnsPolicy":                     {string(corev1.DNSClusterFirst)},
	"enableServiceLinks":            {true},
	"expirationSeconds":             {3600.0},
	"failureThreshold":              {3.0},
	"imagePullPolicy":               {string(corev1.PullAlways), string(corev1.PullIfNotPresent)},
	"path":                          {"/"},
	"periodSeconds":                 {10.0},
	"protocol":                      {string(corev1.ProtocolTCP)},
	"restartPolicy":                 {string(corev1.RestartPolicyAlways)},
	"schedulerName":                 {corev1.DefaultSchedulerName},
	"scheme":                        {string(corev1.URISchemeHTTP)},
	"service":                       {""},
	"serviceAccountName":            {"default"},
	"successThreshold":              {1.0},
	"terminationGracePeriodSeconds": {float64(corev1.DefaultTerminationGracePeriodSeconds)},
	"terminationMessagePath":        {corev1.TerminationMessagePathDefault},
	"terminationMessagePolicy":      {string(corev1.TerminationMessageReadFile)},
	"timeoutSeconds":                {1.0},
}

// fitting returns the revision that a pod without the label of a known one was created from; nil if that is not certain,
// for example because admission has changed the pod. Of several, it is the one with the most labels and annotations, and
// then the newest.
func fitting(cluster *kubegroupv1.PodCluster, revisions map[string]*revision, m *member) *revision {
	var best *revision
	for _, one := range revisions {
		wanted, err := podOf(cluster, one, m.ordinal)
		if err != nil || !fits(wanted, m.pod) {
			continue
		}
		if best == nil || metadataCount(one) > metadataCount(best) ||
			metadataCount(one) == metadataCount(best) && one.object.Revision > best.object.Revision {
			best = one
		}
	}
	return best
}

func metadataCount(r *revision) int {
	if r.template.Metadata == nil {
		return 0
	}
	return len(r.template.Metadata.Labels) + len(r.template.Metadata.Annotations)
}

// fits reports whether a pod has the labels and annotations of another one, and the same spec apart from what the server
// fills in.
func fits(wanted, pod *corev1.Pod) bool {
	for name, value := range wanted.Labels {
		if pod.Labels[name] != value && !isReserved(name) {
			return false
		}
	}
	for name, value := range wanted.Annotations {
		if pod.Annotations[name] != value {
			return false
		}
	}
	var want, have map[string]any
	for spec, content := range map[*corev1.PodSpec]*map[string]any{&wanted.Spec: &want, &pod.Spec: &have} {
		data, err := json.Marshal(asWritten(spec, wanted.Spec.Tolerations))
		if err != nil || json.Unmarshal(data, content) != nil {
			return false
		}
	}
	return sameButDefaults(want, have)
}

// asWritten returns a spec without what the server adds or derives.
func asWritten(spec *corev1.PodSpec, tolerations []corev1.Toleration) *corev1.PodSpec {
	spec = spec.DeepCopy()
	spec.NodeName, spec.DeprecatedServiceAccount, spec.EphemeralContainers = "", "", nil
	spec.Priority, spec.PreemptionPolicy = nil, nil
	spec.Tolerations = slices.DeleteFunc(spec.Tolerations, func(one corev1.Toleration) bool {
		return isServersToleration(&one) && !slices.ContainsFunc(tolerations, func(own corev1.Toleration) bool { return own.Key == one.Key })
	})
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, tokenVolume) })
	for i := range spec.Volumes {
		if path := spec.Volumes[i].HostPath; path != nil && path.Type != nil && *path.Type == corev1.HostPathUnset {
			path.Type = nil
		}
	}
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			container := &containers[i]
			container.VolumeMounts = slices.DeleteFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return strings.HasPrefix(m.Name, tokenVolume) })
			// With hostNetwork, the API server sets hostPort to containerPort.
			for j := range container.Ports {
				if port := &container.Ports[j]; spec.HostNetwork && port.HostPort == 0 {
					port.HostPort = port.ContainerPort
				}
			}
			// A container requests what it is limited to, unless it says otherwise.
			for name, limit := range container.Resources.Limits {
				if container.Resources.Requests == nil {
					container.Resources.Requests = corev1.ResourceList{}
				}
				if _, set := container.Resources.Requests[name]; !set {
					container.Resources.Requests[name] = limit
				}
			}
		}
	}
	return spec
}

// sameButDefaults compares two values of JSON, of which the second one may have defaults in addition.
func sameButDefaults(want, have any) bool {
	switch have := have.(type) {
	case map[string]any:
		wanted, isMap := want.(map[string]any)
		if !isMap {
			return false
		}
		for name, part := range wanted {
			if _, has := have[name]; !has && part != nil {
				return false
			}
		}
		for name, value := range have {
			part := wanted[name]
			if part == nil && value != nil && !isServerDefault(name, value) || part != nil && !sameButDefaults(part, value) {
				return false
			}
		}
		return true
	case []any:
		wanted, isList := want.([]any)
		return isList && slices.EqualFunc(wanted, have, sameButDefaults)
	default:
		return reflect.DeepEqual(want, have)
	}
}

func isServerDefault(name string, value any) bool {
	if content, isMap := value.(map[string]any); isMap && len(content) == 0 {
		return true
	}
	return slices.ContainsFunc(serverDefaults[name], func(known any) bool { return reflect.DeepEqual(known, value) })
}
