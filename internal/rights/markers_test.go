// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/testenv"
)

const controller = `package controller

// +kubebuilder:rbac:groups=sea,resources=frigates,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=sea,resources=frigates/status,verbs=patch
//+kubebuilder:rbac:groups=apps;batch,resources=deployments;jobs,verbs=*

// +kubebuilder:rbac:groups=core,resources=secrets,verbs=get

// Reconcile has text that is no marker.
func Reconcile() string {
	return ` + "`" + `
// +kubebuilder:rbac:groups=not,resources=one,verbs=get
` + "`" + ` // +kubebuilder:rbac:groups=trailing,resources=left,verbs=get
}

// +kubebuilder:rbac:groups=wrong,verb=get
`

func TestReadMarkers(t *testing.T) {
	dir := testenv.Dir(t, map[string]string{
		"internal/controller/frigate.go": controller, "internal/controller/frigate_test.go": controller, "vendor/x/x.go": controller, "testdata/x.go": controller,
		"other/go.mod": "module other\n", "other/x.go": controller, "plain.go": "package plain\n",
	})
	markers, err := ReadMarkers(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, m := range markers {
		got.WriteString(m.Place() + " ")
		if m.Problem != nil {
			got.WriteString("left alone\n")
			continue
		}
		got.WriteString(m.format(m.ToRule()) + "\n")
	}
	const want = `internal/controller/frigate.go:3 +kubebuilder:rbac:groups=sea,resources=frigates,verbs=get;list;watch;create;update;patch;delete
internal/controller/frigate.go:4 +kubebuilder:rbac:groups=sea,resources=frigates/status,verbs=patch
internal/controller/frigate.go:5 +kubebuilder:rbac:groups=apps;batch,resources=deployments;jobs,verbs=*
internal/controller/frigate.go:7 +kubebuilder:rbac:groups="",resources=secrets,verbs=get
internal/controller/frigate.go:13 left alone
internal/controller/frigate.go:16 left alone
`
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
	granted := FromMarkers(markers)
	if len(granted.Rules) != 4 || len(granted.Notes) != 2 || !strings.HasPrefix(granted.Notes[0], "internal/controller/frigate.go:13 cannot be parsed") {
		t.Errorf("got %d rules and notes %q", len(granted.Rules), granted.Notes)
	}
}

func TestPlanEdits(t *testing.T) {
	dir := testenv.Dir(t, map[string]string{"frigate.go": controller})
	markers, err := ReadMarkers(dir)
	if err != nil {
		t.Fatal(err)
	}
	grants := []Grant{
		{Right: Right{"list", "sea", "frigates", ""}}, {Right: Right{"watch", "sea", "frigates", ""}}, {Right: Right{"patch", "sea", "frigates/status", ""}},
		{Right: Right{"update", "sea", "frigates/finalizers", ""}}, {Right: Right{"list", "apps", "deployments", ""}}, {Right: Right{"patch", "apps", "deployments", ""}},
		{Right: Right{"list", "batch", "jobs", ""}}, {Right: Right{"get", "networking.k8s.io", "ingresses", ""}},
		{Right: Right{"get", "coordination.k8s.io", "leases", ""}, Namespaces: []string{"ship-system"}},
	}
	plan, err := PlanEdits(dir, markers, grants, []Rule{rule("leader", "ship-system", "coordination.k8s.io", "leases", "get")})
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Changes) != 1 {
		t.Fatalf("got %d changed files", len(plan.Changes))
	}
	const want = `package controller

// +kubebuilder:rbac:groups=sea,resources=frigates,verbs=list;watch
// +kubebuilder:rbac:groups=sea,resources=frigates/status,verbs=patch
// +kubebuilder:rbac:groups=sea,resources=frigates/finalizers,verbs=update
//+kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;patch
//+kubebuilder:rbac:groups=batch,resources=jobs,verbs=list

// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=get

// Reconcile has text that is no marker.
`
	got := string(plan.Changes[0].Content)
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	_, restBefore, _ := strings.Cut(controller, "// Reconcile has")
	if _, rest, _ := strings.Cut(got, "// Reconcile has"); rest != restBefore {
		t.Errorf("what is not a marker has changed:\n%s", rest)
	}

	// What has been edited needs no edit.
	again := testenv.Dir(t, map[string]string{"frigate.go": got})
	if markers, err = ReadMarkers(again); err != nil {
		t.Fatal(err)
	}
	if plan, err = PlanEdits(again, markers, grants, []Rule{rule("leader", "ship-system", "coordination.k8s.io", "leases", "get")}); err != nil || len(plan.Edits) > 0 {
		t.Errorf("got %v, %v", plan, err)
	}
}

func TestPlanEditsKeepsWhatIsAsNeeded(t *testing.T) {
	const source = "package a\r\n\r\n\t// +kubebuilder:rbac:verbs=watch;list,resources=frigates,groups=sea\r\n// +kubebuilder:rbac:groups=sea,resources=boats,verbs=get,namespace=x,roleName=y\r\n"
	dir := testenv.Dir(t, map[string]string{"a.go": source})
	markers, err := ReadMarkers(dir)
	if err != nil {
		t.Fatal(err)
	}
	grants := []Grant{{Right: Right{"list", "sea", "frigates", ""}}, {Right: Right{"watch", "sea", "frigates", ""}}, {Right: Right{"get", "sea", "boats", ""}, Namespaces: []string{"x"}}}
	plan, err := PlanEdits(dir, markers, grants, nil)
	if err != nil || len(plan.Edits) > 0 || len(plan.Changes) > 0 {
		t.Errorf("got %v, %v", plan, err)
	}
	plan, err = PlanEdits(dir, markers, grants[:1], nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = "package a\r\n\r\n\t// +kubebuilder:rbac:groups=sea,resources=frigates,verbs=list\r\n"
	if got := string(plan.Changes[0].Content); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPlanEditsOfAChangedFile has an editor that saves the file while the operator is recorded.
func TestPlanEditsOfAChangedFile(t *testing.T) {
	const source = `package a

// +kubebuilder:rbac:groups=sea,resources=frigates,verbs=get;list
// +kubebuilder:rbac:groups=sea,resources=boats,verbs=get

// A is a constant.
const A = 1
`
	for name, test := range map[string]struct {
		now   string
		fails bool
	}{
		"unchanged":               {source, false},
		"changed below":           {source + "\nconst B = 2\n", false},
		"with an import":          {strings.Replace(source, "package a\n", "package a\n\nimport \"fmt\"\n", 1), true},
		"with another first line": {"// Package a is new.\n" + source, true},
		"shorter":                 {"package a\n\n// +kubebuilder:rbac:groups=sea,resources=boats,verbs=get\n", true},
		"with another marker":     {strings.Replace(source, "boats,verbs=get", "boats,verbs=get;list", 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := testenv.Dir(t, map[string]string{"a.go": source})
			markers, err := ReadMarkers(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(test.now), 0o600); err != nil {
				t.Fatal(err)
			}
			plan, err := PlanEdits(dir, markers, []Grant{{Right: Right{"get", "sea", "frigates", ""}}, {Right: Right{"list", "sea", "boats", ""}}}, nil)
			switch {
			case test.fails && (err == nil || !strings.Contains(err.Error(), "a.go has changed since it was read")):
				t.Errorf("got %v, with changes %v", err, plan)
			case !test.fails && (err != nil || len(plan.Changes) != 1):
				t.Errorf("got %v, %v", plan, err)
			}
		})
	}
}

func TestPlanEditsWithoutMarkers(t *testing.T) {
	if _, err := PlanEdits(t.TempDir(), nil, []Grant{{Right: Right{"list", "sea", "frigates", ""}}}, nil); !errors.Is(err, ErrNoMarkers) {
		t.Errorf("got %v", err)
	}
}

// objects reads YAML.
func objects(t *testing.T, documents ...string) (all []*unstructured.Unstructured) {
	t.Helper()
	for _, document := range documents {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}

const rbacVersion = "apiVersion: rbac.authorization.k8s.io/v1\n"

func TestFromObjects(t *testing.T) {
	granted, err := FromObjects(objects(t,
		rbacVersion+"kind: ClusterRole\nmetadata: {name: manager}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {part: \"yes\"}}]}\n",
		rbacVersion+"kind: ClusterRole\nmetadata: {name: part, labels: {part: \"yes\"}}\nrules: [{apiGroups: [apps], resources: [deployments], verbs: [get]}]\n",
		rbacVersion+"kind: ClusterRole\nmetadata: {name: other}\nrules: [{apiGroups: [apps], resources: [daemonsets], verbs: [get]}]\n",
		rbacVersion+"kind: Role\nmetadata: {name: leader, namespace: ship}\nrules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get]}]\n",
		rbacVersion+"kind: ClusterRoleBinding\nmetadata: {name: one}\nroleRef: {kind: ClusterRole, name: manager}\n",
		rbacVersion+"kind: RoleBinding\nmetadata: {name: two, namespace: ship}\nroleRef: {kind: Role, name: leader}\n",
		rbacVersion+"kind: RoleBinding\nmetadata: {name: three, namespace: kube-system}\nroleRef: {kind: Role, name: extension-apiserver-authentication-reader}\n",
		rbacVersion+"kind: ClusterRoleBinding\nmetadata: {name: four}\nroleRef: {kind: ClusterRole, name: view}\n",
	))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for i := range granted.Rules {
		for _, part := range granted.Rules[i].atoms() {
			got.WriteString(granted.Rules[i].From + " " + granted.Rules[i].Namespace + ": " + part.Verb + " " + part.Resource + "\n")
		}
	}
	const want = `ClusterRole manager : get deployments
Role leader ship: get leases
Role extension-apiserver-authentication-reader kube-system: get configmaps
Role extension-apiserver-authentication-reader kube-system: list configmaps
Role extension-apiserver-authentication-reader kube-system: watch configmaps
`
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
	if got := strings.Join(granted.Bound, " "); got != "part manager leader extension-apiserver-authentication-reader view" {
		t.Errorf("bound are %s", got)
	}
	if len(granted.Notes) != 1 || !strings.HasPrefix(granted.Notes[0], "ClusterRole view, which ClusterRoleBinding four refers to") {
		t.Errorf("got notes %q", granted.Notes)
	}
}

func TestChartsThatIncludeRules(t *testing.T) {
	dir := testenv.Dir(t, map[string]string{
		"chart/Chart.yaml": "name: ship\n",
		"chart/templates/_helpers.tpl": `{{- define "ship.name" -}}ship{{- end -}}
{{- define "ship.rules" -}}
- apiGroups: [""] {{/* the core group */}}
  resources: [configmaps]
  verbs: [list, watch]
{{- if .Values.secrets }}
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
  resourceNames:
{{ toYaml .Values.secrets | nindent 4 }}
{{- end }}
{{- end -}}
{{- define "ship.other" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
{{- end -}}
`,
		"chart/templates/role.yaml": `kind: ClusterRole
metadata:
  name: ship
rules:
  - apiGroups: [sea]
    resources: [frigates]
    verbs: [get]
  {{- include "ship.rules" . | nindent 2 }}
{{- if .Values.pods }}
  {{- include "ship.unknown" . | nindent 2 }}
{{- end }}
  - apiGroups: [apps]
    resources: [deployments]
    verbs: [get]
---
kind: ClusterRoleBinding
roleRef:
  kind: ClusterRole
  name: ship
`,
	})
	charts, err := ReadCharts(dir, "ship-system")
	if err != nil || len(charts) != 1 {
		t.Fatalf("got %v, %v", charts, err)
	}
	var resources []string
	for _, rule := range charts[0].Rules {
		resources = append(resources, rule.Resources...)
	}
	if got := strings.Join(resources, " "); got != "frigates configmaps secrets deployments" {
		t.Errorf("rules are read about %s, and notes are %q", got, charts[0].Notes)
	}
	if notes := strings.Join(charts[0].Notes, "\n"); !strings.Contains(notes, "chart/templates/role.yaml:10 generates rules from a template") {
		t.Errorf("notes are %s", notes)
	}
}

func TestReadCharts(t *testing.T) {
	const (
		role = `{{- if .Values.rbac.create }}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ include "ship.fullname" . }}-manager
  labels: {{- include "ship.labels" . | nindent 4 }}
rules:
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list]
{{- if .Values.jobs }}
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get]
{{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ include "ship.fullname" . }}-viewer
rules:
- apiGroups: [sea]
  resources: [frigates]
  verbs: [get]
{{- end }}
`
		made = `kind: Role
metadata:
  name: {{ .Release.Name }}-made
rules:
  {{- toYaml .Values.rules | nindent 2 }}
`
		bindings = `kind: ClusterRoleBinding
metadata:
  name: {{ include "ship.fullname" . }}-manager
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ include "ship.fullname" . }}-manager
---
kind: RoleBinding
metadata:
  name: made
roleRef:
  kind: Role
  name: {{ .Release.Name }}-made
`
	)
	dir := testenv.Dir(t, map[string]string{
		"charts/ship/Chart.yaml": "name: ship\n", "charts/ship/templates/role.yaml": role, "charts/ship/templates/made.yaml": made,
		"charts/ship/templates/bindings.yaml": bindings, "charts/bare/Chart.yaml": "name: bare\n",
	})
	charts, err := ReadCharts(dir, "ship-system")
	if err != nil || len(charts) != 2 {
		t.Fatalf("got %v, %v", charts, err)
	}
	if charts[0].Source != "" || len(charts[0].Rules) > 0 {
		t.Errorf("a chart without templates grants %v", charts[0])
	}
	chart := charts[1]
	if len(chart.Rules) != 2 || chart.Rules[0].Resources[0] != "deployments" || chart.Rules[1].Resources[0] != "jobs" || chart.Rules[0].From != "charts/ship/templates/role.yaml:1" {
		t.Errorf("got %v", chart.Rules)
	}
	const want = "charts/ship/templates/made.yaml:5 generates rules from a template, which cannot be read without Helm"
	if len(chart.Notes) == 0 || chart.Notes[len(chart.Notes)-1] != want {
		t.Errorf("got notes %q, want %q as the last", chart.Notes, want)
	}
}
