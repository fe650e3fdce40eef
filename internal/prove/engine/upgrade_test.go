// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/crddiff"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/report"
	"github.com/opdock/opdock/internal/prove/world"
	"github.com/opdock/opdock/why"
)

// thing is an object with its key.
type thing struct {
	key    world.Key
	object *unstructured.Unstructured
}

func newThing(group, resource, kind, name string, fields map[string]any) thing {
	object := &unstructured.Unstructured{Object: fields}
	object.SetKind(kind)
	object.SetAPIVersion(strings.TrimPrefix(group+"/v1", "/"))
	object.SetName(name)
	object.SetNamespace("default")
	if object.GetUID() == "" {
		object.SetUID(types.UID("uid-of-" + name))
	}
	return thing{world.Key{Group: group, Resource: resource, Kind: kind, Namespace: "default", Name: name}, object}
}

// deployment has an image, replicas and what else is set.
func deployment(image string, replicas int64, set ...func(o *unstructured.Unstructured)) thing {
	d := newThing("apps", "deployments", "Deployment", "web", map[string]any{
		"spec": map[string]any{"replicas": replicas, "template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "app", "image": image}},
		}}},
	})
	for _, one := range set {
		one(d.object)
	}
	return d
}

func service() thing {
	return newThing("", "services", "Service", "web", map[string]any{"spec": map[string]any{"type": "ClusterIP"}})
}

func site(message string, finalizers ...string) thing {
	s := newThing("example.com", "sites", "Site", "blog", map[string]any{"spec": map[string]any{"size": int64(3)}, "status": map[string]any{"message": message}})
	s.object.SetFinalizers(finalizers)
	return s
}

func stateOf(things ...thing) world.State {
	state := world.State{}
	for _, one := range things {
		state[one.key] = one.object
	}
	return state
}

// texts are observations in one line each.
func texts(wrong []*Observation) (lines []string) {
	for _, o := range wrong {
		line := o.Severity + " " + o.Verdict + ": " + o.Title
		if len(o.Fields) > 0 {
			line += " [" + strings.Join(o.Fields, " ") + "]"
		}
		lines = append(lines, line)
	}
	return lines
}

func TestTaking(t *testing.T) {
	onDelete := func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, "OnDelete", "spec", "updateStrategy", "type")
	}
	paused := func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, true, "spec", "paused") }
	recreated := func(o *unstructured.Unstructured) { o.SetUID("another") }
	image := "spec.template.spec.containers[app].image"
	for _, test := range []struct {
		name          string
		before, after world.State
		writes        []unasked
		replaced      []string
		want          []string
	}{
		{"nothing", stateOf(deployment("a", 1), site("fine")), stateOf(deployment("a", 1), site("fine")), nil, nil, nil},
		{
			"pod template", stateOf(deployment("a", 1), site("fine")), stateOf(deployment("b", 1), site("rolled out")),
			[]unasked{
				{verb: "update", object: "Deployment default/web", fields: []string{image}},
				{verb: "patch", object: "Site default/blog", fields: []string{"status.message"}, status: true},
			},
			[]string{"Pod default/web-*"},
			[]string{"high end-state: The upgrade restarts the workload of Deployment default/web [" + image + "]"},
		},
		{
			"pod template and replicas", stateOf(deployment("a", 1)), stateOf(deployment("b", 2)), nil, nil,
			[]string{"high end-state: The upgrade restarts the workload of Deployment default/web [" + image + "]"},
		},
		{
			"pod template that is not rolled out", stateOf(deployment("a", 1, onDelete)), stateOf(deployment("b", 1, onDelete)), nil, nil,
			[]string{"medium end-state: The upgrade changes Deployment default/web [" + image + "]"},
		},
		{
			"paused", stateOf(deployment("a", 1, paused)), stateOf(deployment("b", 1, paused)), nil, nil,
			[]string{"medium end-state: The upgrade changes Deployment default/web [" + image + "]"},
		},
		{
			"replicas", stateOf(deployment("a", 1)), stateOf(deployment("a", 2)), nil, nil,
			[]string{"medium end-state: The upgrade changes Deployment default/web [spec.replicas]"},
		},
		{
			"recreated", stateOf(deployment("a", 1)), stateOf(deployment("b", 1, recreated)), nil, []string{"Pod default/web-*"},
			[]string{"high counts: The upgrade deletes Deployment default/web and creates it again"},
		},
		{"gone", stateOf(deployment("a", 1), service()), stateOf(deployment("a", 1)), nil, nil, []string{"high end-state: The upgrade deletes Service default/web"}},
		{"new", stateOf(deployment("a", 1)), stateOf(deployment("a", 1), service()), nil, nil, []string{"medium end-state: The upgrade creates Service default/web"}},
		{
			"status", stateOf(site("fine")), stateOf(site("splendid")), []unasked{{verb: "patch", object: "Site default/blog", fields: []string{"status.message"}, status: true}}, nil,
			[]string{"low status: The upgrade changes the status of Site default/blog [status.message]"},
		},
		{
			"a write without a trace", stateOf(service()), stateOf(service()), []unasked{{verb: "update", object: "Service default/web", fields: []string{"spec.type"}}}, nil,
			[]string{"medium rest-writes: After the upgrade the operator writes Service default/web, although nothing asked for it [spec.type]"},
		},
		{
			"a status without a trace", stateOf(site("fine")), stateOf(site("fine")), []unasked{{verb: "patch", object: "Site default/blog", fields: []string{"status.at"}, status: true}}, nil,
			[]string{"low rest-writes: After the upgrade the operator writes the status of Site default/blog, although nothing asked for it [status.at]"},
		},
		{
			"an address of the scenario", stateOf(site("192.0.2.10")), stateOf(site("192.0.2.11")), nil, nil,
			[]string{"low status: The upgrade changes the status of Site default/blog [status.message]"},
		},
		{"an allocated address", stateOf(site("192.0.2.11")), stateOf(site("192.0.2.12")), nil, nil, nil},
		{"pods", stateOf(deployment("a", 1)), stateOf(deployment("a", 1)), nil, []string{"Pod default/web-*"}, []string{"high counts: The upgrade replaces Pod default/web-*"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := &upgrade{new: &campaign{o: Options{Texts: []string{"192.0.2.10"}}}}
			one := &taking{before: test.before, after: test.after, shapeOf: u.shapeOf, mask: compare.NewMask(), writes: test.writes, replaced: test.replaced}
			if got := texts(one.judge()); !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestUnasked(t *testing.T) {
	write := func(verb, subresource string, status int, change *lens.Change) *lens.Event {
		return &lens.Event{At: time.Now(), Request: &lens.Request{
			Verb: verb, Status: status, Change: change, Resource: lens.Resource{Resource: "sites", Subresource: subresource}, Object: &lens.Object{Kind: "Site", Namespace: "default", Name: "blog"},
		}}
	}
	changed := func(paths ...string) *lens.Change {
		change := &lens.Change{}
		for _, path := range paths {
			change.Fields = append(change.Fields, why.Change{Path: path})
		}
		return change
	}
	got := unaskedIn([]*lens.Event{
		write("get", "", 200, nil), write("update", "", 200, &lens.Change{None: true}), write("update", "", 409, changed("spec.size")), {},
		write("update", "", 200, changed("spec.size")), write("patch", "status", 200, changed("status.at")), write("update", "", 200, changed("status.at")),
	})
	if len(got) != 3 || got[0].status || !got[1].status || !got[2].status || got[0].object != "Site default/blog" {
		t.Errorf("got %+v", got)
	}
	if left := without(got, []unasked{{verb: "patch", object: "Site default/blog", fields: []string{"status.at"}}}); len(left) != 2 || left[1].verb != "update" {
		t.Errorf("without what happens anyway: %+v", left)
	}
}

func TestAfterwards(t *testing.T) {
	stuck := site("fine", "example.com/old")
	now := metav1.Now()
	stuck.object.SetDeletionTimestamp(&now)
	child := service()
	_ = unstructured.SetNestedSlice(child.object.Object, []any{map[string]any{"kind": "Site", "name": "blog", "uid": "uid-of-blog"}}, "metadata", "ownerReferences")
	kept := newThing("", "secrets", "Secret", "kept", map[string]any{})
	broken := site("fine")
	_ = unstructured.SetNestedSlice(broken.object.Object, []any{map[string]any{"type": "Ready", "status": "False", "message": "no"}}, "status", "conditions")
	for _, test := range []struct {
		name string
		got  []*Observation
		want []string
	}{
		{"a finalizer that is not removed", leftBehind(nil, stateOf(stuck, child), nil), []string{"high deletion: The deletion of Site default/blog does not end after the upgrade"}},
		{"left behind", leftBehind(nil, stateOf(service(), kept), stateOf(kept)), []string{"high leftovers: Service default/web is left behind when the custom resources are deleted after the upgrade"}},
		{"not ready", notReady("upgrade", stateOf(site("fine")), stateOf(broken)), []string{"high status: Site default/blog is not ready after the upgrade"}},
		{"ready", notReady("upgrade", stateOf(broken), stateOf(broken)), nil},
		{
			"the way back", notBack(compare.NewMask().Differences(compare.ShapeOf(stateOf(site("fine"), service()), nil), compare.ShapeOf(stateOf(site("new", "example.com/new"), kept), nil))),
			[]string{
				"medium leftovers: After the downgrade, Secret default/kept of the newer release is left", "high end-state: After the downgrade, Service default/web is missing",
				"medium end-state: After the downgrade, Site default/blog is not what it was before the upgrade [metadata.finalizers[0]]",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := texts(test.got); !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestStored(t *testing.T) {
	definition := func(properties map[string]apiextensionsv1.JSONSchemaProps) []*apiextensionsv1.CustomResourceDefinition {
		return []*apiextensionsv1.CustomResourceDefinition{{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Site"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object", Properties: properties}, "status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"message": {Type: "string"}}},
				}},
			}}},
		}}}
	}
	state := stateOf(site("fine"), deployment("a", 1))
	most := 2.0
	for name, test := range map[string]struct {
		properties map[string]apiextensionsv1.JSONSchemaProps
		want       []string
	}{
		"same":     {map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "integer"}}, nil},
		"narrowed": {map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "integer", Maximum: &most}}, []string{"high admission: Site default/blog is no longer valid after the upgrade"}},
		"removed":  {map[string]apiextensionsv1.JSONSchemaProps{"weight": {Type: "integer"}}, []string{"high admission: Site default/blog loses data with the upgrade [spec.size]"}},
	} {
		if got := texts(storedObservations(definition(test.properties), state)); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	got := texts(schemaObservations([]crddiff.Difference{
		{CRD: "sites.example.com", Version: "v1", Path: "spec.size", Severity: crddiff.Breaking, Reason: "Narrowed"},
		{CRD: "sites.example.com", Severity: crddiff.Risky, Reason: "NamesChanged"}, {CRD: "sites.example.com", Severity: crddiff.Compatible, Reason: "Widened"},
	}))
	want := []string{
		"high admission: The CRDs differ in a breaking way: sites.example.com v1 spec.size (Narrowed) [spec.size]",
		"low admission: The CRDs differ in a risky way: sites.example.com (NamesChanged)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRoundTrip(t *testing.T) {
	full, less := site("fine"), site("fine")
	unstructured.RemoveNestedField(less.object.Object, "spec", "size")
	versions := func(v1, v2 thing) map[string]*unstructured.Unstructured {
		return map[string]*unstructured.Unstructured{"v1": v1.object, "v2": v2.object}
	}
	served := []string{"v1", "v2"}
	if o := unequal(full.key, "v1", served, versions(less, full), versions(less, full)); o != nil {
		t.Errorf("equal: %+v", o)
	}
	written := site("fine")
	unstructured.RemoveNestedField(written.object.Object, "spec", "size")
	for _, one := range []thing{full, written} {
		if err := unstructured.SetNestedField(one.object.Object, int64(1), "status", "observedGeneration"); err != nil {
			t.Fatal(err)
		}
		one.object.SetGeneration(1)
	}
	written.object.SetGeneration(2)
	o := unequal(full.key, "v1", served, versions(less, full), versions(less, written))
	if o == nil || !slices.Equal(o.Fields, []string{"spec.size"}) || !strings.Contains(o.Got, "in version v2") || !strings.Contains(o.Title, "writes it in version v1") {
		t.Errorf("a field that is lost in the other version: %+v", o)
	}
}

// TestUpgradesAreConfirmed has an observation that is made again, one that is not, and one that needs no replay.
func TestUpgradesAreConfirmed(t *testing.T) {
	lasting, accident, static := &Observation{Verdict: "exit", Title: "lasting"}, &Observation{Verdict: "exit", Title: "accident"}, &Observation{Verdict: "admission", Title: "static"}
	c := &campaign{o: Options{Earlier: &Earlier{Name: "v1"}}}
	u := &upgrade{new: c, static: map[*Observation]bool{}}
	u.begin()
	u.ran = upgradeRuns
	u.addStatic(static)
	if u.isOpen(u.found) {
		t.Error("a replay for what follows from the CRDs")
	}
	u.add("upgrade", lasting)
	u.add("downgrade", accident)
	for replays := 0; u.isOpen(u.found); replays++ {
		if replays == 2 {
			t.Fatal("two replays are enough here")
		}
		u.replays = append(u.replays, upgradeReplay{upgradeRuns, map[string]bool{lasting.cause(): true}})
	}
	u.replays = append(u.replays, upgradeReplay{ran: nil}) // nothing was installed, so it says nothing
	g := newGathering(c, time.Now())
	g.addUpgrade(u)
	if family := g.families[upgradeFamily]; family.Flaky != 1 || family.Clean != 1 {
		t.Errorf("%+v", family)
	}
	for o, want := range map[*Observation]report.Finding{lasting: {Replays: 2, Again: 2}, accident: {Replays: 2, Flaky: true}, static: {}} {
		if got := g.findings[o.cause()]; got.Replays != want.Replays || got.Again != want.Again || got.Flaky != want.Flaky {
			t.Errorf("%s: again in %d of %d, flaky: %t", o.Title, got.Again, got.Replays, got.Flaky)
		}
	}
}

// TestUpgradesOfIdleReleases has an earlier release that writes nothing, perhaps because it watches another namespace.
func TestUpgradesOfIdleReleases(t *testing.T) {
	for _, idle := range []bool{false, true} {
		c := &campaign{o: Options{Earlier: &Earlier{Name: "v1"}}}
		u := &upgrade{new: c, ran: upgradeRuns, idle: idle}
		g := newGathering(c, time.Now())
		g.addUpgrade(u)
		var reasons []string
		for _, one := range g.skipped {
			reasons = append(reasons, one.Reason)
		}
		if said := strings.Contains(strings.Join(reasons, "\n"), "v1 writes nothing"); said != idle {
			t.Errorf("idle: %t, not tried: %q", idle, reasons)
		}
		if family := g.families[upgradeFamily]; family.Clean != len(upgradeRuns) {
			t.Errorf("idle: %t, %+v", idle, family)
		}
	}
}

// TestUpgradesOfObjectsWithOtherNames has objects that the operator names differently each time, and others whose names look
// like that.
func TestUpgradesOfObjectsWithOtherNames(t *testing.T) {
	const uuid, otherUUID = "01234567-89ab-cdef-0123-456789abcdef", "5d5f67c2-897b-450d-a646-7b9551563a65"
	creates := func(object string) *Observation {
		return &Observation{Family: upgradeFamily, Verdict: "end-state", Object: object, Title: "It creates " + object}
	}
	leaves := func(object string) *Observation {
		return &Observation{Family: upgradeFamily, Verdict: "leftovers", Object: object, Title: object + " is left behind"}
	}
	exits := &Observation{Family: upgradeFamily, Verdict: "exit", Title: "It exits"}
	type all = []*Observation
	for about, test := range map[string]struct {
		first, replay all
		again         []int // of each in the first
	}{
		"a time":         {all{creates("Job a/log-20261118173012")}, all{creates("Job a/log-20261118173055")}, []int{1}},
		"a random part":  {all{leaves("Job a/log-x7k2p")}, all{leaves("Job a/log-9qw4z")}, []int{1}},
		"a UUID":         {all{leaves("Job a/log-" + uuid)}, all{leaves("Job a/log-" + otherUUID)}, []int{1}},
		"another object": {all{creates("Job a/log-20261118173012")}, all{creates("Job a/clean-20261118173055")}, []int{0}},
		"another kind":   {all{creates("Job a/log-x7k2p")}, all{creates("Pod a/log-9qw4z")}, []int{0}},
		"something else": {all{creates("Job a/log-x7k2p")}, all{leaves("Job a/log-9qw4z")}, []int{0}},
		"one of two alike": {
			all{leaves("Secret a/web-keys"), leaves("Secret a/web-data")}, all{leaves("Secret a/web-keys")}, []int{1, 0},
		},
		"no object":  {all{exits}, all{exits}, []int{1}},
		"an ordinal": {all{leaves("Pod a/web-0")}, all{leaves("Pod a/web-1")}, []int{0}},
	} {
		u := &upgrade{new: &campaign{}, static: map[*Observation]bool{}}
		u.begin()
		u.ran = upgradeRuns
		u.add("upgrade", test.replay...)
		u.replays = append(u.replays, u.replayed(map[string][]*Observation{"upgrade": test.first}))
		for i, o := range test.first {
			if replays, again := u.again("upgrade", o); replays != 1 || again != test.again[i] {
				t.Errorf("%s: %s again in %d of %d", about, o.Object, again, replays)
			}
		}
	}
}

func TestWantsUpgrade(t *testing.T) {
	from := &Earlier{}
	for _, test := range []struct {
		o           Options
		wants, only bool
	}{
		{Options{}, false, false},
		{Options{Families: []string{"crash"}, Earlier: from}, false, false},
		{Options{Earlier: from}, true, false},
		{Options{Families: []string{"crash", "upgrade"}, Earlier: from}, true, false},
		{Options{Families: []string{"upgrade"}, Earlier: from}, true, true},
		{Options{Families: []string{"upgrade"}, Earlier: from, Only: &Plan{}}, false, false},
	} {
		if wants, only := test.o.wantsUpgrade(), test.o.onlyUpgrade(); wants != test.wants || only != test.only {
			t.Errorf("families %v: wanted %v, nothing else %v", test.o.Families, wants, only)
		}
	}
}
