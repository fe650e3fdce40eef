// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/crdspec"
)

func TestManifestsOfAllLayouts(t *testing.T) {
	for folder, expected := range map[string]struct{ crds, manifests, samples, user, identity string }{
		"single": {
			crds: "CustomResourceDefinition ships.sea.example.com",
			manifests: "Namespace harbour-system, CustomResourceDefinition ships.sea.example.com, " +
				"ServiceAccount harbour-system/harbour-controller-manager, Role harbour-system/harbour-leader-election-role, " +
				"ClusterRole harbour-manager-role, ClusterRole harbour-viewer-role, " +
				"RoleBinding harbour-system/harbour-leader-election-rolebinding, ClusterRoleBinding harbour-manager-rolebinding, " +
				"Service harbour-system/harbour-webhook-service, Deployment harbour-system/harbour-controller-manager, " +
				"ValidatingWebhookConfiguration harbour-validating-webhook-configuration",
			samples: "Ship argo",
			user:    "system:serviceaccount:harbour-system:harbour-controller-manager",
			identity: "Namespace harbour-system, ServiceAccount harbour-system/harbour-controller-manager, ClusterRole harbour-manager-role, " +
				"Role harbour-system/harbour-leader-election-role, ClusterRoleBinding harbour-manager-rolebinding, " +
				"RoleBinding harbour-system/harbour-leader-election-rolebinding",
		},
		"multigroup": {
			crds: "CustomResourceDefinition carts.land.example.com, CustomResourceDefinition ships.sea.example.com",
			manifests: "Namespace world-system, CustomResourceDefinition carts.land.example.com, CustomResourceDefinition ships.sea.example.com, " +
				"ServiceAccount world-system/world-controller-manager, Role world-system/world-leader-election-role, " +
				"ClusterRole world-manager-role, ClusterRole world-viewer-role, " +
				"RoleBinding world-system/world-leader-election-rolebinding, ClusterRoleBinding world-manager-rolebinding, " +
				"Deployment world-system/world-controller-manager",
			samples: "Cart wain, Ship argo",
			user:    "system:serviceaccount:world-system:world-controller-manager",
			identity: "Namespace world-system, ServiceAccount world-system/world-controller-manager, ClusterRole world-manager-role, " +
				"Role world-system/world-leader-election-role, ClusterRoleBinding world-manager-rolebinding, " +
				"RoleBinding world-system/world-leader-election-rolebinding",
		},
		"sdk": {
			crds: "CustomResourceDefinition ferries.sea.example.com",
			manifests: "CustomResourceDefinition ferries.sea.example.com, Deployment ferry-operator, Role ferry-operator, " +
				"RoleBinding ferry-operator, ServiceAccount ferry-operator",
			samples:  "Ferry example-ferry",
			user:     "system:serviceaccount:default:ferry-operator",
			identity: "ServiceAccount default/ferry-operator, Role default/ferry-operator, RoleBinding default/ferry-operator",
		},
		"plain": {
			crds:      "CustomResourceDefinition boats.rowing.example.com",
			manifests: "CustomResourceDefinition boats.rowing.example.com",
			samples:   "Boat eight, Boat four",
		},
	} {
		t.Run(folder, func(t *testing.T) {
			p := fixture(t, folder)
			crds, err := p.CRDs(t.Context())
			if err != nil || names(crds) != expected.crds {
				t.Errorf("the CRDs are %s, %v", names(crds), err)
			}
			manifests, err := p.Manifests(t.Context())
			if err != nil || names(manifests) != expected.manifests {
				t.Errorf("the manifests are %s, %v", names(manifests), err)
			}
			samples, err := p.Samples(t.Context())
			if err != nil || names(samples) != expected.samples {
				t.Errorf("the samples are %s, %v", names(samples), err)
			}
			identity, err := p.Identity(t.Context())
			switch {
			case err != nil:
				t.Error(err)
			case expected.user == "" && identity != nil:
				t.Errorf("there is an identity: %+v", identity)
			case expected.user != "" && identity == nil:
				t.Error("there is no identity")
			case identity != nil && (identity.User() != expected.user || names(identity.Objects) != expected.identity):
				t.Errorf("the identity is %s by %s", identity.User(), names(identity.Objects))
			}
		})
	}
}

func TestTheCRDThatCanDoMoreIsChosen(t *testing.T) {
	p := fixture(t, "plain")
	var warnings []string
	p.Warn = func(message string) { warnings = append(warnings, message) }
	crds, err := p.CRDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.CRDs(t.Context()); err != nil { // which warns of nothing that is known
		t.Fatal(err)
	}
	if _, has := crdspec.Of(crds[0]).Versions[0].Fields["subresources"]; !has {
		t.Error("the one without a status subresource was chosen")
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "using artifacts/examples/crd-status-subresource.yaml") {
		t.Errorf("the warnings are %q", warnings)
	}
}

func TestWebhooks(t *testing.T) {
	for folder, expected := range map[string]struct {
		configurations, conversion string
		deployed                   bool
	}{
		"single":     {"ValidatingWebhookConfiguration harbour-validating-webhook-configuration", "", true},
		"multigroup": {"ValidatingWebhookConfiguration validating-webhook-configuration", "carts.land.example.com", false},
		"sdk":        {"", "", true},
	} {
		webhooks, err := fixture(t, folder).Webhooks(t.Context())
		if err != nil {
			t.Errorf("%s: %v", folder, err)
			continue
		}
		conversion := strings.Join(webhooks.Conversion, ", ")
		if names(webhooks.Configurations) != expected.configurations || conversion != expected.conversion || webhooks.Deployed != expected.deployed {
			t.Errorf("%s: %s, %s, %v", folder, names(webhooks.Configurations), conversion, webhooks.Deployed)
		}
	}
}

const oldDefinition = `# An old one.
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata:
  name: things.example.com
`

func TestWebhooksOfAChart(t *testing.T) {
	const hooks = "{{- if .Values.webhooks }}\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata:\n  name: {{ .Release.Name }}\n{{- end }}\n"
	p := write(t, map[string]string{
		"go.mod": "module example.com/a\n", "deploy/charts/a/Chart.yaml": "name: a\n", "deploy/charts/a/templates/hooks/webhook.yaml": hooks,
		"deploy/charts/a/templates/role.yaml": "kind: ClusterRole\n", "deploy/templates/webhook.yaml": hooks, "docs/a/Chart.yaml": "name: a\n", "docs/a/templates/webhook.yaml": hooks,
	})
	if got := p.TemplatedWebhooks(); !slices.Equal(got, []string{"deploy/charts/a/templates/hooks/webhook.yaml"}) {
		t.Errorf("got %q", got)
	}
}

func TestBadManifests(t *testing.T) {
	const goMod = "module example.com/a\n"
	for name, test := range map[string]struct {
		files    map[string]string
		expected []string
	}{
		"invalid YAML": {
			map[string]string{"deploy/role.yaml": "kind: A\napiVersion: v1\n---\n# B\nkind: B\nmetadata: [\n"}, []string{"deploy/role.yaml:6: "},
		},
		"tab": {
			map[string]string{"deploy/role.yaml": "kind: A\nmetadata:\n\tname: a\n"}, []string{"deploy/role.yaml:3: "},
		},
		"invalid YAML in a kustomization": {
			map[string]string{
				"config/crd/kustomization.yaml": "resources: [bases/a.yaml]\n", "config/crd/bases/a.yaml": "kind: A\nmetadata:\n\tname: a\n",
			},
			[]string{"building config/crd: config/crd/bases/a.yaml:3: "},
		},
		"missing file in a kustomization": {
			map[string]string{"config/crd/kustomization.yaml": "resources: [bases/absent.yaml]\n"}, []string{"building config/crd: config/crd/bases/absent.yaml does not exist, and config/crd/kustomization.yaml refers to it"},
		},
		"v1beta1": {
			map[string]string{"deploy/crds/thing.yaml": oldDefinition}, []string{"deploy/crds/thing.yaml:2: ", "things.example.com", "v1beta1", "no group", "apiextensions.k8s.io/v1"},
		},
		"v1beta1 in a kustomization": {
			map[string]string{"config/crd/kustomization.yaml": "resources: [thing.yaml]\n", "config/crd/thing.yaml": oldDefinition},
			[]string{"config/crd/thing.yaml:2: ", "v1beta1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.files["go.mod"] = goMod
			_, err := write(t, test.files).CRDs(t.Context())
			expectError(t, err, test.expected...)
		})
	}
}

// Recipes show how the operator is used, and the same objects may be in several of them.
func TestRecipesAreNoManifests(t *testing.T) {
	const agent = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: agent}}\n"
	p := write(t, map[string]string{
		"go.mod": "module example.com/a\n", "deploy/recipes/one/agent.yaml": agent, "deploy/recipes/two.yaml": agent,
		"deploy/account.yaml": "{apiVersion: v1, kind: ServiceAccount, metadata: {name: operator}}\n",
	})
	p.Warn = func(message string) { t.Errorf("it says %s", message) }
	all, err := p.Manifests(t.Context())
	if err != nil || names(all) != "ServiceAccount operator" {
		t.Errorf("got %s, %v", names(all), err)
	}
}

// A chart may have templates of its CRDs in crds, although Helm does not render them there. Other files have the same CRDs.
func TestTemplatesOfCRDs(t *testing.T) {
	const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    {{- with .Values.crds.annotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  name: redises.db.io
spec: {group: db.io, names: {kind: Redis, plural: redises}, versions: [{name: v1, served: true, storage: true}]}
`
	action := regexp.MustCompile(`(?m)^ +\{\{.*\n`)
	p := write(t, map[string]string{
		"go.mod": "module example.com/redis\n", "charts/redis/crds/redis.yaml": crd, "manifests/redis.yaml": action.ReplaceAllString(crd, ""),
	})
	var warnings []string
	p.Warn = func(message string) { warnings = append(warnings, message) }
	all, err := p.CRDs(t.Context())
	if err != nil || names(all) != "CustomResourceDefinition redises.db.io" {
		t.Errorf("got %s, %v", names(all), err)
	}
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "charts/redis/crds/redis.yaml:") || !strings.Contains(warnings[0], "template of Helm") {
		t.Errorf("it says %q", warnings)
	}
}

func TestTemplatesAreNoManifests(t *testing.T) {
	p := write(t, map[string]string{
		"go.mod":                         "module example.com/a\n",
		"charts/a/templates/role.yaml":   "{{ if .Values.role }}\nkind: Role\n{{ end }}\n",
		"charts/a/values.yaml":           "role: true\n",
		"deploy/patch.yaml":              "{{ .Image }}: x: y\n",
		"charts/a/crds/things.yaml":      strings.Replace(oldDefinition, "v1beta1", "v1", 1),
		"deploy/old/things_v1beta1.yaml": oldDefinition,
	})
	crds, err := p.CRDs(t.Context())
	if err != nil || names(crds) != "CustomResourceDefinition things.example.com" {
		t.Errorf("the CRDs are %s, %v", names(crds), err)
	}
}

// A project without a kind has patches, which are lists, and no folder for CRDs.
func TestPatchesAreNoManifests(t *testing.T) {
	p := write(t, map[string]string{
		"go.mod":                    "module example.com/a\n",
		"config/default/patch.yaml": "- op: add\n  path: /spec/a\n  value: b\n",
		"config/default/other.yaml": "just some text\n---\n42\n",
	})
	if crds, err := p.CRDs(t.Context()); err != nil || len(crds) != 0 {
		t.Errorf("the CRDs are %s, %v", names(crds), err)
	}
}

func TestNoCRDs(t *testing.T) {
	p := write(t, map[string]string{"go.mod": "module example.com/a\n"})
	crds, err := p.CRDs(t.Context())
	if err != nil || len(crds) != 0 {
		t.Errorf("the CRDs are %s, %v", names(crds), err)
	}
	if err := p.NoCRDs(); !errors.Is(err, ErrNoCRDs) || !strings.Contains(err.Error(), "config, deploy") {
		t.Errorf("the error is %v", err)
	}
}

func TestRolesThatGatherOthers(t *testing.T) {
	p := write(t, map[string]string{
		"go.mod": "module example.com/a\n",
		"deploy/a.yaml": `apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: here}}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}, aggregationRule: {clusterRoleSelectors: []}}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: part}}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
  metadata: {name: bind}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: all}
  subjects: [{kind: Group, name: "system:serviceaccounts:here"}]
`,
	})
	identity, err := p.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := names(identity.Objects); got != "ServiceAccount here/a, ClusterRole all, ClusterRole part, ClusterRoleBinding bind" {
		t.Errorf("the identity is %s", got)
	}
}

// What kustomize has to say does not go to the terminal, where it would be in the way of what is shown there.
func TestWarningsOfKustomize(t *testing.T) {
	p := write(t, map[string]string{
		"go.mod":                            "module example.com/a\n",
		"config/default/kustomization.yaml": "commonLabels: {app: a}\nresources: [a.yaml]\n",
		"config/default/a.yaml":             "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n",
	})
	var warnings []string
	p.Warn = func(message string) { warnings = append(warnings, message) }
	stderr := os.Stderr
	caught, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer caught.Close()
	os.Stderr = caught
	defer func() { os.Stderr = stderr }()
	for range 2 {
		if _, err := p.Manifests(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if os.Stderr != caught {
		t.Error("standard error was not put back")
	}
	if written, err := os.ReadFile(caught.Name()); err != nil || len(written) > 0 {
		t.Errorf("%q was written, %v", written, err)
	}
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "kustomize: 'commonLabels' is deprecated.") {
		t.Errorf("the warnings are %q", warnings)
	}
}

// Folders of examples have what the samples refer to as well.
func TestSamplesInFoldersOfExamples(t *testing.T) {
	p := write(t, map[string]string{
		"go.mod":          "module example.com/a\n",
		"deploy/crd.yaml": definition("Thing", "things"),
		"examples/thing.yaml": "{apiVersion: other.io/v1, kind: Thing, metadata: {name: a}}\n---\n" +
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: beside}}\n",
		"examples/secret.yaml":     "{apiVersion: v1, kind: Secret, metadata: {name: login}}\n",
		"examples/hpa.yaml":        "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: more}}\n",
		"examples/deployment.yaml": "# Something else.\n---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: apart}}\n",
		"deploy/secret.yaml":       "{apiVersion: v1, kind: Secret, metadata: {name: not-a-sample}}\n",
	})
	var warnings []string
	p.Warn = func(message string) { warnings = append(warnings, message) }
	samples, err := p.Samples(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := names(samples); got != "HorizontalPodAutoscaler more, Secret login, Deployment beside, Thing a" {
		t.Errorf("the samples are %s", got)
	}
	if want := "examples/deployment.yaml:3: Deployment apart is not applied with the samples; apply it yourself if they need it"; !slices.Equal(warnings, []string{want}) {
		t.Errorf("the warnings are %q", warnings)
	}
	if got := p.Folders().Samples; !slices.Equal(got, []string{"deploy", "examples"}) {
		t.Errorf("samples are watched in %q", got)
	}
}

// Some projects keep their examples beside the documentation.
func TestSamplesInDocs(t *testing.T) {
	p := write(t, map[string]string{
		"go.mod":                        "module example.com/a\n",
		"deploy/crd.yaml":               definition("Thing", "things"),
		"docs/examples/web/thing.yaml":  "{apiVersion: other.io/v1, kind: Thing, metadata: {name: a}}\n",
		"docs/examples/web/secret.yaml": "{apiVersion: v1, kind: Secret, metadata: {name: login}}\n",
		"docs/design/thing.yaml":        "{apiVersion: other.io/v1, kind: Thing, metadata: {name: b}}\n",
	})
	samples, err := p.Samples(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := names(samples); got != "Secret login, Thing a" {
		t.Errorf("the samples are %s", got)
	}
	if got := p.Folders().Samples; !slices.Contains(got, "docs/examples") {
		t.Errorf("samples are watched in %q", got)
	}
}
