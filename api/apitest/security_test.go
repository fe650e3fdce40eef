// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"fmt"
	"strings"
	"testing"
)

const forbids = "securityProfile Restricted forbids "

// What the restricted Pod Security Standard forbids, where an AppService can say it.
func TestRestrictedAppServicesAreRestricted(t *testing.T) {
	var table []bad
	good := map[string]string{}
	for _, test := range []struct{ spec, field, message string }{
		{`hostNetwork: true`, "hostNetwork", "hostNetwork"},
		{`podSecurityContext: {runAsNonRoot: false}`, "podSecurityContext", "runAsNonRoot: false"},
		{`podSecurityContext: {runAsUser: 0}`, "podSecurityContext", "runAsNonRoot: false, runAsUser: 0"},
		{`podSecurityContext: {seccompProfile: {type: Unconfined}}`, "podSecurityContext", "runAsNonRoot: false, runAsUser: 0 and seccompProfile Unconfined"},
		{`podSecurityContext: {sysctls: [{name: kernel.msgmax, value: "1"}]}`, "podSecurityContext.sysctls", "sysctls"},
		{`volumes: [{name: a, emptyDir: {}}, {name: b, hostPath: {path: /}}]`, "volumes", "hostPath: volumes [\"b\"]"},
		{`podMetadata: {annotations: {container.apparmor.security.beta.kubernetes.io/app: unconfined}}`, "podMetadata.annotations", "AppArmor annotations"},
		{`securityContext: {privileged: true}`, "securityContext", "securityContext.privileged"},
		{`securityContext: {allowPrivilegeEscalation: true}`, "securityContext", "securityContext.privileged and allowPrivilegeEscalation"},
		{`securityContext: {capabilities: {add: [NET_BIND_SERVICE, SYS_ADMIN]}}`, "securityContext.capabilities.add", "securityContext.capabilities.add"},
		{`securityContext: {runAsNonRoot: false}`, "securityContext", "securityContext with runAsNonRoot: false"},
		{`securityContext: {runAsUser: 0}`, "securityContext", "securityContext with runAsNonRoot: false, runAsUser: 0"},
		{`securityContext: {seccompProfile: {type: Unconfined}}`, "securityContext", "securityContext with"},
		{`securityContext: {appArmorProfile: {type: Unconfined}}`, "securityContext", "securityContext with"},
		{`livenessProbe: {httpGet: {port: 80, host: 192.0.2.1}}`, "", "host in livenessProbe"},
		{`readinessProbe: {tcpSocket: {port: 80, host: 192.0.2.1}}`, "", "host in livenessProbe"},
	} {
		path := strings.TrimSuffix("spec."+test.field, ".")
		table = append(table, bad{test.spec, `{spec: {securityProfile: Restricted, ` + test.spec + `}}`, path + ": Invalid value: " + forbids + test.message})
		for _, profile := range []string{"RuntimeDefault", "AsWritten"} {
			good[profile+" with "+test.spec] = `{spec: {securityProfile: ` + profile + `, ` + test.spec + `}}`
		}
	}
	for _, spec := range []string{
		`podSecurityContext: {runAsNonRoot: true, runAsUser: 1000, runAsGroup: 0, fsGroup: 0, seccompProfile: {type: Localhost, localhostProfile: a}}`,
		`podSecurityContext: {sysctls: [{name: net.ipv4.ip_unprivileged_port_start, value: "0"}, {name: net.ipv4.tcp_wmem, value: "1"}]}`,
		`volumes: [{name: a, emptyDir: {}}, {name: b, csi: {driver: a}}, {name: c, secret: {secretName: s}}]`,
		`podMetadata: {annotations: {container.apparmor.security.beta.kubernetes.io/app: localhost/a, note: unconfined}}`,
		`securityContext: {privileged: false, allowPrivilegeEscalation: false, capabilities: {add: [NET_BIND_SERVICE], drop: [ALL]}, appArmorProfile: {type: RuntimeDefault}}`,
		`livenessProbe: {httpGet: {port: 80}}`,
	} {
		good["Restricted with "+spec] = `{spec: {securityProfile: Restricted, ` + spec + `}}`
	}
	for _, file := range []string{"app_v1_appservice.yaml", "app_v1alpha1_appservice.yaml"} {
		t.Run(file, func(t *testing.T) {
			refuses(t, file, table)
			accepts(t, file, good)
		})
	}
}

// The same for kinds with a template.
func TestRestrictedTemplatesAreRestricted(t *testing.T) {
	var table []bad
	good := map[string]string{}
	add := func(template, path, message string) {
		table = append(table, bad{template, `{spec: {securityProfile: Restricted, template: ` + template + `}}`, "spec.template." + path + ": Invalid value: " + forbids + message})
		good["RuntimeDefault with "+template] = `{spec: {template: ` + template + `}}`
		good["AsWritten with "+template] = `{spec: {securityProfile: AsWritten, template: ` + template + `}}`
	}
	for _, test := range []struct{ spec, field, message string }{
		{`hostNetwork: true`, "hostNetwork", "hostNetwork"},
		{`securityContext: {runAsNonRoot: false}`, "securityContext", "runAsNonRoot: false"},
		{`securityContext: {runAsUser: 0}`, "securityContext", "runAsNonRoot: false, runAsUser: 0"},
		{`securityContext: {seccompProfile: {type: Unconfined}}`, "securityContext", "runAsNonRoot: false, runAsUser: 0 and seccompProfile Unconfined"},
		{`securityContext: {sysctls: [{name: kernel.msgmax, value: "1"}]}`, "securityContext.sysctls", "sysctls"},
		{`volumes: [{name: a, hostPath: {path: /}}]`, "volumes", "hostPath: volumes [\"a\"]"},
	} {
		add(`{spec: {containers: [{name: main}], `+test.spec+`}}`, "spec."+test.field, test.message)
	}
	add(`{metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/main: unconfined}}, spec: {containers: [{name: main}]}}`,
		"metadata.annotations", "AppArmor annotations")
	for setting, message := range map[string]string{
		`securityContext: {privileged: true}`:                                "securityContext.privileged and allowPrivilegeEscalation",
		`securityContext: {allowPrivilegeEscalation: true}`:                  "securityContext.privileged and allowPrivilegeEscalation",
		`securityContext: {capabilities: {add: [SYS_ADMIN]}}`:                "securityContext.capabilities.add other than NET_BIND_SERVICE",
		`securityContext: {runAsNonRoot: false}`:                             "securityContext with runAsNonRoot: false, runAsUser: 0, seccompProfile or appArmorProfile Unconfined",
		`securityContext: {runAsUser: 0}`:                                    "securityContext with runAsNonRoot: false, runAsUser: 0, seccompProfile or appArmorProfile Unconfined",
		`securityContext: {seccompProfile: {type: Unconfined}}`:              "securityContext with runAsNonRoot: false, runAsUser: 0, seccompProfile or appArmorProfile Unconfined",
		`securityContext: {appArmorProfile: {type: Unconfined}}`:             "securityContext with runAsNonRoot: false, runAsUser: 0, seccompProfile or appArmorProfile Unconfined",
		`livenessProbe: {httpGet: {port: 80, host: a}}`:                      "host in livenessProbe, readinessProbe and startupProbe",
		`startupProbe: {tcpSocket: {port: 80, host: a}}`:                     "host in livenessProbe, readinessProbe and startupProbe",
		`ports: [{containerPort: 81}, {containerPort: 80, hostPort: 30080}]`: "ports.hostPort",
	} {
		add(`{spec: {containers: [{name: fine}, {name: main, `+setting+`}]}}`, "spec.containers", message+`: containers ["main"]`)
		add(`{spec: {containers: [{name: fine}], initContainers: [{name: first, restartPolicy: Always, `+setting+`}]}}`, "spec.initContainers", message+`: initContainers ["first"]`)
	}
	good["Restricted"] = `{spec: {securityProfile: Restricted}}`
	good["Restricted with more"] = `{spec: {securityProfile: Restricted, template: {spec: {securityContext: {runAsUser: 1}, containers: [{name: main, ` +
		`securityContext: {capabilities: {add: [NET_BIND_SERVICE]}}, ports: [{containerPort: 80}], readinessProbe: {httpGet: {port: 80}}}]}}}}`
	for _, file := range []string{"robot_v1_robot.yaml", "kubegroup_v1_podcluster.yaml"} {
		t.Run(file, func(t *testing.T) {
			refuses(t, file, table)
			accepts(t, file, good)
		})
	}
}

// Labels by which controllers find pods are refused, and named.
func TestReservedPodLabels(t *testing.T) {
	for file, patch := range map[string]string{
		"app_v1_appservice.yaml":       `{spec: {podMetadata: {labels: {%s: mine, tier: web}}}}`,
		"app_v1alpha1_appservice.yaml": `{spec: {podMetadata: {labels: {%s: mine, tier: web}}}}`,
		"robot_v1_robot.yaml":          `{spec: {template: {metadata: {labels: {%s: mine, tier: web}}, spec: {containers: [{name: main}]}}}}`,
		"kubegroup_v1_podcluster.yaml": `{spec: {template: {metadata: {labels: {%s: mine, tier: web}}, spec: {containers: [{name: main}]}}}}`,
	} {
		t.Run(file, func(t *testing.T) {
			var table []bad
			for _, key := range []string{
				"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "opdock.dev/deployment",
				"pod-template-hash", "controller-revision-hash", "apps.kubernetes.io/pod-index",
			} {
				table = append(table, bad{key, fmt.Sprintf(patch, key), "etadata.labels: Invalid value: these labels are reserved for controllers: [\"" + key + "\"]"})
			}
			refuses(t, file, table)
			accepts(t, file, map[string]string{"others": fmt.Sprintf(patch, "app.kubernetes.io/part-of")})
		})
	}
}
