// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/flow"
)

// standards are the versions of the standard that a cluster may enforce: from the oldest server that takes all our
// sysctls to the newest.
var standards = []api.Version{api.MajorMinorVersion(1, 32), api.MajorMinorVersion(1, 34), api.MajorMinorVersion(1, 36), api.LatestVersion()}

var newEvaluator = sync.OnceValues(func() (policy.Evaluator, error) { return policy.NewEvaluator(policy.DefaultChecks(), nil) })

// violations are what the Pod Security Standard of a level has against a template, in upstream's own judgement.
func violations(t *testing.T, template *sharedv1.PodTemplate, level api.Level, version api.Version) string {
	t.Helper()
	evaluator, err := newEvaluator()
	if err != nil {
		t.Fatal(err)
	}
	pod := podFrom(t, template)
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(api.LevelVersion{Level: level, Version: version}, &pod.ObjectMeta, &pod.Spec))
	if result.Allowed {
		return ""
	}
	return result.ForbiddenDetail()
}

func podFrom(t *testing.T, template *sharedv1.PodTemplate) *corev1.PodTemplateSpec {
	t.Helper()
	converted, err := Template(template, "image", nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(converted)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal(data, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// podSettings are all settings of a pod that the standards speak of, and some of which they do not, as a spec may have
// them.
var podSettings = []string{
	`{spec: {hostNetwork: true}}`,
	`{spec: {securityContext: {runAsNonRoot: false}}}`, `{spec: {securityContext: {runAsNonRoot: true}}}`,
	`{spec: {securityContext: {runAsUser: 0}}}`, `{spec: {securityContext: {runAsUser: 1000, fsGroup: 0, supplementalGroups: [0]}}}`,
	`{spec: {securityContext: {seccompProfile: {type: Unconfined}}}}`, `{spec: {securityContext: {seccompProfile: {type: RuntimeDefault}}}}`,
	`{spec: {securityContext: {seccompProfile: {type: Localhost, localhostProfile: a}}}}`,
	`{spec: {securityContext: {sysctls: [{name: kernel.msgmax, value: "1"}]}}}`,
	`{spec: {securityContext: {sysctls: [{name: net.ipv4.tcp_rmem, value: "1"}, {name: net.ipv4.ip_unprivileged_port_start, value: "0"}]}}}`,
	`{spec: {volumes: [{name: v, hostPath: {path: /}}]}}`,
	`{spec: {volumes: [{name: v, emptyDir: {}}, {name: w, csi: {driver: d}}, {name: x, persistentVolumeClaim: {claimName: c}}, {name: z, secret: {secretName: s}}]}}`,
	`{metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/main: unconfined}}}`,
	`{metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/main: runtime/default, other: unconfined}}}`,
	`{spec: {dnsPolicy: Default, serviceAccountName: a, hostAliases: [{ip: 127.0.0.1}]}}`,
}

// containerSettings are the same for a container.
var containerSettings = []string{
	`{securityContext: {privileged: true}}`, `{securityContext: {privileged: false}}`,
	`{securityContext: {allowPrivilegeEscalation: true}}`, `{securityContext: {allowPrivilegeEscalation: false}}`,
	`{securityContext: {capabilities: {add: [SYS_ADMIN]}}}`, `{securityContext: {capabilities: {add: [NET_BIND_SERVICE]}}}`,
	`{securityContext: {capabilities: {add: [ALL]}}}`, `{securityContext: {capabilities: {drop: [NET_RAW]}}}`, `{securityContext: {capabilities: {drop: [ALL]}}}`,
	`{securityContext: {runAsNonRoot: false}}`, `{securityContext: {runAsNonRoot: true}}`,
	`{securityContext: {runAsUser: 0}}`, `{securityContext: {runAsUser: 1, runAsGroup: 0}}`,
	`{securityContext: {seccompProfile: {type: Unconfined}}}`, `{securityContext: {seccompProfile: {type: RuntimeDefault}}}`,
	`{securityContext: {appArmorProfile: {type: Unconfined}}}`, `{securityContext: {appArmorProfile: {type: RuntimeDefault}}}`,
	`{ports: [{containerPort: 80, hostPort: 80}]}`, `{ports: [{containerPort: 80}]}`,
	`{livenessProbe: {httpGet: {port: 80, host: 192.0.2.1}}}`, `{readinessProbe: {tcpSocket: {port: 80, host: 192.0.2.1}}}`,
	`{startupProbe: {httpGet: {port: 80, host: localhost}}}`, `{livenessProbe: {httpGet: {port: 80}}}`,
	`{securityContext: {readOnlyRootFilesystem: false}}`, `{volumeMounts: [{name: v, mountPath: /v, mountPropagation: None}]}`,
}

// plain is a template with nothing in it but its containers.
func plain() *sharedv1.PodTemplate {
	return &sharedv1.PodTemplate{Spec: sharedv1.PodSpec{
		Containers:     []sharedv1.Container{{Name: "main"}, {Name: "side"}},
		InitContainers: []sharedv1.Container{{Name: "init"}},
	}}
}

// randomTemplate has a few settings chosen at random.
func randomTemplate(t *testing.T, random *rand.Rand) (template *sharedv1.PodTemplate, settings []string) {
	t.Helper()
	template = plain()
	put := func(into any, from []string) {
		setting := from[random.IntN(len(from))]
		settings = append(settings, setting)
		if err := yaml.Unmarshal([]byte(setting), into); err != nil {
			t.Fatalf("%s: %v", setting, err)
		}
	}
	for range random.IntN(3) {
		template.Spec.Volumes = nil // or what is decoded would be added to each of them
		put(template, podSettings)
	}
	for _, container := range []*sharedv1.Container{&template.Spec.Containers[0], &template.Spec.Containers[1], &template.Spec.InitContainers[0]} {
		for range random.IntN(3) {
			put(container, containerSettings)
		}
	}
	return template, settings
}

// Restricted is refused or restricted, and refused only if it could not be restricted.
func TestRestrictedIsWhatUpstreamCallsRestricted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same cases each time
	refused, made := 0, 0
	for range 5000 {
		template, settings := randomTemplate(t, random)
		before := template.DeepCopy()
		secured, err := Secure(template, sharedv1.PodSecurityRestricted)
		if a, b := asJSON(t, before), asJSON(t, template); a != b {
			t.Fatalf("the template was changed from %s to %s", a, b)
		}
		if err != nil {
			refused++
			restrict(&template.Spec)
			if found := violations(t, template, api.LevelRestricted, api.MajorMinorVersion(1, 36)); found == "" {
				t.Errorf("%s is refused without need: %v", settings, err)
			}
			if !flow.IsStalled(err) || flow.Reason(err) != ReasonInvalidSpec {
				t.Errorf("the outcome is %v", err)
			}
			continue
		}
		made++
		for _, version := range standards {
			if found := violations(t, secured, api.LevelRestricted, version); found != "" {
				t.Errorf("%s violates restricted:%v: %s", settings, version, found)
			}
		}
	}
	if refused < 500 || made < 500 {
		t.Errorf("%d were refused and %d made; the cases say little", refused, made)
	}
}

// What runs in a namespace that enforces baseline as it is written runs there by default, too, and nothing that an image
// may rely on is taken away.
func TestTheDefaultRunsEverything(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the same cases each time
	for range 2000 {
		template, settings := randomTemplate(t, random)
		secured, err := Secure(template, sharedv1.PodSecurityRuntimeDefault)
		if err != nil {
			t.Fatalf("%s is refused: %v", settings, err)
		}
		for _, version := range standards {
			if written, made := violations(t, template, api.LevelBaseline, version), violations(t, secured, api.LevelBaseline, version); written != made {
				t.Errorf("%s: as written it violates %q, by default %q", settings, written, made)
			}
		}
	}
	secured, err := Secure(plain(), "")
	if err != nil {
		t.Fatal(err)
	}
	want := plain()
	want.Spec.SecurityContext = &sharedv1.PodSecurityContext{SeccompProfile: &sharedv1.SecurityProfile{Type: "RuntimeDefault"}}
	if got, want := asJSON(t, secured), asJSON(t, want); got != want {
		t.Errorf("the default makes\n%s, not\n%s", got, want)
	}
	written, err := Secure(plain(), sharedv1.PodSecurityAsWritten)
	if err != nil || asJSON(t, written) != asJSON(t, plain()) {
		t.Errorf("as written is %s (%v)", asJSON(t, written), err)
	}
}

func TestAdvice(t *testing.T) {
	restricted, err := Secure(plain(), sharedv1.PodSecurityRestricted)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, message string
		template      *sharedv1.PodTemplate
		want          string
	}{
		{"restricted", `pods "a" is forbidden: violates PodSecurity "restricted:latest": x`, plain(), "set spec.securityProfile: Restricted"},
		{"restricted already", `pods "a" is forbidden: violates PodSecurity "restricted:v1.36": x`, restricted, "is Restricted already"},
		{"baseline", `pods "a" is forbidden: violates PodSecurity "baseline:latest": hostNetwork`, plain(), "remove these settings from the spec"},
		{"something else", `exceeded quota`, plain(), "exceeded quota"},
	} {
		cause := errors.New(test.message)
		got := Advise(cause, &podFrom(t, test.template).Spec)
		if !strings.HasPrefix(got.Error(), test.message) || !strings.Contains(got.Error(), test.want) || !errors.Is(got, cause) {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
