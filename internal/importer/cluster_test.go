// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// source is a cluster that serves some kinds.
type source struct {
	objects   map[string]string // items by path, as JSON
	forbidden []string          // paths
}

func (s source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	listed := func(kind, plural, singular string, namespaced bool, short ...string) metav1.APIResource {
		return metav1.APIResource{Name: plural, SingularName: singular, Kind: kind, Namespaced: namespaced, ShortNames: short, Verbs: metav1.Verbs{"list"}}
	}
	var answer any
	switch r.URL.Path {
	case "/api":
		answer = metav1.APIVersions{Versions: []string{"v1"}}
	case "/apis":
		version := metav1.GroupVersionForDiscovery{GroupVersion: "apps/v1", Version: "v1"}
		answer = metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "apps", Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}}}
	case "/api/v1":
		answer = metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
			listed("ConfigMap", "configmaps", "configmap", true, "cm"), listed("Event", "events", "event", true, "ev"),
			listed("Namespace", "namespaces", "namespace", false, "ns"), listed("Node", "nodes", "node", false, "no"),
		}}
	case "/apis/apps/v1":
		answer = metav1.APIResourceList{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{listed("Deployment", "deployments", "deployment", true, "deploy")}}
	default:
		if slices.Contains(s.forbidden, r.URL.Path) {
			w.WriteHeader(http.StatusForbidden)
			answer = metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden}
			break
		}
		answer = map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{}, "items": json.RawMessage("[" + s.objects[r.URL.Path] + "]")}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func (s source) config(t *testing.T) *rest.Config {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

const (
	shop   = `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}`
	prices = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "prices"}}`
	web    = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "shop", "name": "web"}}`
)

func shopSource() source {
	return source{objects: map[string]string{
		"/api/v1/namespaces": shop, "/api/v1/configmaps": prices, "/apis/apps/v1/deployments": web,
		"/api/v1/namespaces/shop/configmaps": prices, "/apis/apps/v1/namespaces/shop/deployments": web,
	}}
}

// TestKinds is about --kinds, which must mean the same for a cluster and for a dump of it.
func TestKinds(t *testing.T) {
	t.Parallel()
	const none, unknown = "", `no kind "typo"`
	config, path := shopSource().config(t), dump(t, shop, prices, web, shipCRD, `{apiVersion: sea.example.com/v1, kind: Ship, metadata: {name: ada}}`)
	configMaps, deployments := "configmaps shop/prices", "deployments.apps shop/web"
	for kinds, test := range map[string]struct {
		want  []string
		fails string
	}{
		"configmap":                   {[]string{configMaps}, none},
		"ConfigMap":                   {[]string{configMaps}, none},
		"configmaps":                  {[]string{configMaps}, none},
		"cm":                          {[]string{configMaps}, none},
		"configmaps,deploy":           {[]string{configMaps, deployments}, none},
		"deployment.apps":             {[]string{deployments}, none},
		"deployments.apps":            {[]string{deployments}, none},
		"Deployment.apps":             {[]string{deployments}, none},
		"deployments.v1.apps":         {[]string{deployments}, none},
		"deploy.apps":                 {[]string{deployments}, none},
		"namespaces":                  {nil, none},
		"configmap,typo":              {nil, unknown},
		"typo":                        {nil, unknown},
		"deployments.typo":            {nil, `no kind "deployments.typo"`},
		"typo,configmaps,other":       {nil, `no kinds "typo", "other"`},
		"events":                      {nil, `"events" cannot be imported`},
		"configmaps, deployment.apps": {[]string{configMaps, deployments}, none},
	} {
		t.Run(kinds, func(t *testing.T) {
			t.Parallel()
			o := Options{Kinds: strings.Split(kinds, ",")}
			live, _, liveErr := FromCluster(t.Context(), config, o)
			dumped, _, dumpErr := FromFiles(t.Context(), path, o)
			for from, result := range map[string]struct {
				read []Object
				err  error
			}{"cluster": {live, liveErr}, "dump": {dumped, dumpErr}} {
				if test.fails != "" {
					if result.err == nil || !strings.Contains(result.err.Error(), test.fails) {
						t.Errorf("from a %s: got %q and %v, want %s", from, names(result.read), result.err, test.fails)
					}
					continue
				}
				got := slices.DeleteFunc(names(result.read), func(name string) bool {
					return strings.HasPrefix(name, "namespaces ") || strings.HasPrefix(name, "customresourcedefinitions.")
				})
				if result.err != nil || !slices.Equal(got, test.want) {
					t.Errorf("from a %s: got %q and %v, want %q", from, got, result.err, test.want)
				}
			}
		})
	}
	// A dump knows more kinds than it has objects: those of Kubernetes and of its CRDs.
	for _, kinds := range []string{"ship", "shipz", "sh", "shipz.sea.example.com", "secrets", "pvc"} {
		read, _, err := FromFiles(t.Context(), path, Options{Kinds: []string{kinds}})
		if err != nil || slices.Contains(names(read), "shipz.sea.example.com default/ada") != strings.HasPrefix(kinds, "sh") {
			t.Errorf("%s: got %q and %v", kinds, names(read), err)
		}
	}
}

func TestForbidden(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		paths      []string
		selectable bool
	}{
		"only what is always imported": {[]string{"/api/v1/nodes", "/api/v1/namespaces"}, false},
		"also another kind":            {[]string{"/api/v1/nodes", "/api/v1/configmaps"}, false},
		"only other kinds":             {[]string{"/apis/apps/v1/deployments", "/api/v1/configmaps"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := shopSource()
			from.forbidden = test.paths
			_, _, err := FromCluster(t.Context(), from.config(t), Options{})
			var forbidden *ForbiddenError
			if !errors.As(err, &forbidden) || len(forbidden.Resources) != 2 || forbidden.Selectable() != test.selectable {
				t.Errorf("got %v", err)
			}
			if _, report, err := FromCluster(t.Context(), from.config(t), Options{SkipForbidden: true}); err != nil || len(report.Forbidden) != 2 {
				t.Errorf("skipped: got %v and %v", report, err)
			}
		})
	}
}

// TestUnknownNamespace is about -n with a typing error. A cluster without the namespace would hide it.
func TestUnknownNamespace(t *testing.T) {
	t.Parallel()
	withoutRights := shopSource()
	withoutRights.forbidden = []string{"/api/v1/namespaces"}
	fromCluster := func(s source) func(Options) ([]Object, *Report, error) {
		config := s.config(t)
		return func(o Options) ([]Object, *Report, error) { return FromCluster(t.Context(), config, o) }
	}
	fromDump := func(documents ...string) func(Options) ([]Object, *Report, error) {
		path := dump(t, documents...)
		return func(o Options) ([]Object, *Report, error) { return FromFiles(t.Context(), path, o) }
	}
	for name, test := range map[string]struct {
		read       func(Options) ([]Object, *Report, error)
		namespaces []string
		kinds      []string
		fails      string
	}{
		"from a cluster":                   {fromCluster(shopSource()), []string{"typo"}, nil, `no namespace "typo"; it has: shop`},
		"one of two":                       {fromCluster(shopSource()), []string{"shop", "typo"}, nil, `no namespace "typo"`},
		"known":                            {fromCluster(shopSource()), []string{"shop"}, nil, ""},
		"known, without objects":           {fromCluster(shopSource()), []string{"shop"}, []string{"nodes"}, ""},
		"without the right to list them":   {fromCluster(withoutRights), []string{"typo"}, nil, `nothing in namespace "typo"`},
		"without the right, but known":     {fromCluster(withoutRights), []string{"shop"}, nil, ""},
		"from a dump":                      {fromDump(shop, prices), []string{"shop", "typo"}, nil, `no namespace "typo"; it has: shop`},
		"known to a dump":                  {fromDump(shop), []string{"shop"}, nil, ""},
		"known from an object":             {fromDump(prices), []string{"shop"}, nil, ""},
		"known from an object, not chosen": {fromDump(prices), []string{"shop"}, []string{"nodes"}, ""},
		"manifests that are placed there":  {fromDump(`{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}`), []string{"shop"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, _, err := test.read(Options{Namespaces: test.namespaces, Kinds: test.kinds, SkipForbidden: true})
			switch {
			case test.fails == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)):
				t.Errorf("got %q and %v, want %s", names(read), err, test.fails)
			}
		})
	}
}
