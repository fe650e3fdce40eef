// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/flow"
)

// ReasonInvalidSpec means that the spec is one that today's schema would refuse.
const ReasonInvalidSpec = "InvalidSpec"

const (
	allCapabilities = corev1.Capability("ALL")
	bindLowPorts    = corev1.Capability("NET_BIND_SERVICE")
	seccompDefault  = string(corev1.SeccompProfileTypeRuntimeDefault)
	unconfined      = string(corev1.SeccompProfileTypeUnconfined)
	appArmorPrefix  = corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix
	appArmorDefault = corev1.DeprecatedAppArmorBetaProfileRuntimeDefault
	appArmorLocal   = corev1.DeprecatedAppArmorBetaProfileNamePrefix
)

// safeSysctls are those that the baseline Pod Security Standard allows since Kubernetes 1.32. The CRDs have the same list.
var safeSysctls = []string{
	"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range",
	"net.ipv4.ip_unprivileged_port_start", "net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time",
	"net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
}

// Secure returns a copy of a template with the settings of a security profile wherever it leaves them open. A template
// that contradicts the profile is an outcome: the schema refuses it, but did not always.
func Secure(template *sharedv1.PodTemplate, profile sharedv1.PodSecurityProfile) (*sharedv1.PodTemplate, error) {
	template = template.DeepCopy()
	switch profile {
	case sharedv1.PodSecurityAsWritten:
	case sharedv1.PodSecurityRestricted:
		if found := contradictions(template); len(found) > 0 {
			return nil, flow.Stalled(ReasonInvalidSpec, fmt.Errorf("securityProfile Restricted forbids %s; change these settings or securityProfile",
				strings.Join(found, ", ")))
		}
		restrict(&template.Spec)
	default:
		confine(&template.Spec)
	}
	return template, nil
}

// confine adds the container runtime's seccomp profile, which images are made for: container engines apply it by default.
// Everything else that could be taken away, such as root, capabilities or the use of setuid programs, some image needs.
func confine(spec *sharedv1.PodSpec) {
	if spec.SecurityContext == nil {
		spec.SecurityContext = &sharedv1.PodSecurityContext{}
	}
	if spec.SecurityContext.SeccompProfile == nil {
		spec.SecurityContext.SeccompProfile = &sharedv1.SecurityProfile{Type: seccompDefault}
	}
}

// restrict adds what the restricted Pod Security Standard requires where it is left open.
func restrict(spec *sharedv1.PodSpec) {
	confine(spec)
	if spec.SecurityContext.RunAsNonRoot == nil {
		spec.SecurityContext.RunAsNonRoot = ptr.To(true)
	}
	for _, containers := range [][]sharedv1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if containers[i].SecurityContext == nil {
				containers[i].SecurityContext = &sharedv1.SecurityContext{}
			}
			context := containers[i].SecurityContext
			if context.AllowPrivilegeEscalation == nil {
				context.AllowPrivilegeEscalation = ptr.To(false)
			}
			if context.Capabilities == nil {
				context.Capabilities = &sharedv1.Capabilities{}
			}
			if !slices.Contains(context.Capabilities.Drop, allCapabilities) {
				context.Capabilities.Drop = append(context.Capabilities.Drop, allCapabilities)
			}
		}
	}
}

// contradictions are the settings of a template that the restricted Pod Security Standard forbids, as far as our types have
// them at all. The rules of the CRDs say the same.
func contradictions(template *sharedv1.PodTemplate) []string {
	var found []string
	add := func(is bool, format string, args ...any) {
		if is {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	spec := &template.Spec
	add(spec.HostNetwork, "hostNetwork")
	pod := ptr.Deref(spec.SecurityContext, sharedv1.PodSecurityContext{})
	add(!ptr.Deref(pod.RunAsNonRoot, true), "runAsNonRoot: false of the pod")
	add(ptr.Deref(pod.RunAsUser, 1) == 0, "runAsUser: 0 of the pod")
	add(isUnconfined(pod.SeccompProfile), "seccompProfile Unconfined of the pod")
	for _, sysctl := range pod.Sysctls {
		add(!slices.Contains(safeSysctls, sysctl.Name), "sysctl %s", sysctl.Name)
	}
	for i := range spec.Volumes {
		add(spec.Volumes[i].HostPath != nil, "hostPath of volume %s", spec.Volumes[i].Name)
	}
	if template.Metadata != nil {
		for key, value := range template.Metadata.Annotations {
			add(strings.HasPrefix(key, appArmorPrefix) && value != "" && value != appArmorDefault && !strings.HasPrefix(value, appArmorLocal),
				"annotation %s: %s", key, value)
		}
	}
	for _, containers := range [][]sharedv1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			for _, setting := range contradictionsIn(&containers[i]) {
				found = append(found, setting+" of container "+containers[i].Name)
			}
		}
	}
	slices.Sort(found)
	return found
}

func contradictionsIn(container *sharedv1.Container) []string {
	var found []string
	add := func(is bool, setting string) {
		if is {
			found = append(found, setting)
		}
	}
	context := ptr.Deref(container.SecurityContext, sharedv1.SecurityContext{})
	add(ptr.Deref(context.Privileged, false), "privileged")
	add(ptr.Deref(context.AllowPrivilegeEscalation, false), "allowPrivilegeEscalation")
	for _, capability := range ptr.Deref(context.Capabilities, sharedv1.Capabilities{}).Add {
		add(capability != bindLowPorts, "capability "+string(capability))
	}
	add(!ptr.Deref(context.RunAsNonRoot, true), "runAsNonRoot: false")
	add(ptr.Deref(context.RunAsUser, 1) == 0, "runAsUser: 0")
	add(isUnconfined(context.SeccompProfile), "seccompProfile Unconfined")
	add(isUnconfined(context.AppArmorProfile), "appArmorProfile Unconfined")
	add(slices.ContainsFunc(container.Ports, func(port sharedv1.ContainerPort) bool { return port.HostPort != 0 }), "hostPort")
	for name, probe := range map[string]*sharedv1.Probe{
		"livenessProbe": container.LivenessProbe, "readinessProbe": container.ReadinessProbe, "startupProbe": container.StartupProbe,
	} {
		add(probe != nil && (probe.HTTPGet != nil && probe.HTTPGet.Host != "" || probe.TCPSocket != nil && probe.TCPSocket.Host != ""), "host in "+name)
	}
	return found
}

func isUnconfined(profile *sharedv1.SecurityProfile) bool {
	return profile != nil && profile.Type == unconfined
}

// Advise adds to an error about a pod that the server refuses what to do about it, if the pod violates the Pod Security
// Standard that its namespace enforces. Other errors stay as they are.
func Advise(err error, spec *corev1.PodSpec) error {
	_, violation, found := strings.Cut(err.Error(), `violates PodSecurity "`)
	if !found {
		return err
	}
	switch level, _, _ := strings.Cut(violation, ":"); {
	case level == "restricted" && !isRestricted(spec):
		return fmt.Errorf("%w; the namespace enforces the restricted Pod Security Standard: set spec.securityProfile: Restricted", err)
	case level == "restricted":
		return fmt.Errorf("%w; spec.securityProfile is Restricted already, so the settings were added by another admission plugin or webhook", err)
	default:
		return fmt.Errorf("%w; the namespace enforces the %s Pod Security Standard: remove these settings from the spec, or use another namespace", err, level)
	}
}

// isRestricted reports whether a pod was made with the profile Restricted.
func isRestricted(spec *corev1.PodSpec) bool {
	return spec.SecurityContext != nil && ptr.Deref(spec.SecurityContext.RunAsNonRoot, false) &&
		!slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool {
			return c.SecurityContext == nil || c.SecurityContext.Capabilities == nil || !slices.Contains(c.SecurityContext.Capabilities.Drop, allCapabilities)
		})
}
