// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"testing"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/testenv"
)

// TestTheProposalIsNotWiderThanWhatIsGranted has rules that are narrower than what recordings alone would lead to.
func TestTheProposalIsNotWiderThanWhatIsGranted(t *testing.T) {
	const (
		marker   = "+kubebuilder:rbac:groups="
		frigates = marker + "sea,resources=frigates,verbs=list;watch\n"
		reader   = "kube-system/extension-apiserver-authentication"
		csr      = "certificates.k8s.io"
	)
	approves := func() *lens.Use {
		return implied(asked(1, "approve", "signers."+csr, "/example.com/ship"), "approving")
	}
	for name, test := range map[string]struct {
		uses  []*lens.Use
		rules []Rule
		want  string
		found string
	}{
		"a name in no namespace": {
			[]*lens.Use{asked(1, "get", "namespaces", "/kube-system")}, []Rule{rule("role", "", "", "namespaces", "get", "kube-system")},
			marker + "\"\",resources=namespaces,resourceNames=kube-system,verbs=get\n" + frigates, "",
		},
		"all names of a rule, which may come from custom resources": {
			[]*lens.Use{asked(1, "get", "secrets", "default/one")}, []Rule{rule("role", "", "", "secrets", "get", "one", "two")},
			marker + "\"\",resources=secrets,resourceNames=one;two,verbs=get\n" + frigates, "unused: get secrets two\n",
		},
		"only the names that are fixed": {
			[]*lens.Use{asked(1, "get", "secrets", "ship-system/one")}, []Rule{rule("role", "ship-system", "", "secrets", "get", "one", "two")},
			frigates + marker + "\"\",resources=secrets,resourceNames=one,verbs=get,namespace=ship-system\n", "unused: get secrets two\n",
		},
		"a Role of another namespace": {
			[]*lens.Use{asked(1, "watch", "configmaps", reader)}, []Rule{rule("reader", "kube-system", "", "configmaps", "get,list,watch", "extension-apiserver-authentication")},
			frigates + marker + "\"\",resources=configmaps,resourceNames=extension-apiserver-authentication,verbs=list;watch,namespace=kube-system\n",
			"unused: get configmaps: reads are answered from a cache, which needs list and watch, not get\n",
		},
		"two Roles": {
			[]*lens.Use{asked(1, "patch", "services", "a/x", "b/x")}, []Rule{rule("one", "a", "", "services", "patch"), rule("two", "b", "", "services", "*", "x")},
			frigates + marker + "\"\",resources=services,verbs=patch,namespace=a\n" + marker + "\"\",resources=services,resourceNames=x,verbs=patch,namespace=b\n",
			"broader: * services: used only for patch on services\n",
		},
		"a Role and the whole cluster": {
			[]*lens.Use{asked(1, "patch", "services", "a/x")}, []Rule{rule("one", "a", "", "services", "patch"), rule("two", "", "", "services", "patch")},
			marker + "\"\",resources=services,verbs=patch\n" + frigates, "",
		},
		"one of two Roles": {
			[]*lens.Use{asked(1, "patch", "services", "a/x", "b/x")}, []Rule{rule("one", "a", "", "services", "patch")},
			marker + "\"\",resources=services,verbs=patch\n" + frigates, "missing: patch services\n",
		},
		"a signer": {
			[]*lens.Use{approves()}, []Rule{rule("role", "", csr, "signers", "approve", "example.com/ship", "example.com/boat")},
			marker + csr + ",resources=signers,resourceNames=example.com/ship,verbs=approve\n" + frigates, "unused: approve signers." + csr + " example.com/boat\n",
		},
		"the signers of a domain": {
			[]*lens.Use{approves()}, []Rule{rule("role", "", csr, "signers", "approve", "example.com/*")},
			marker + csr + ",resources=signers,resourceNames=example.com/*,verbs=approve\n" + frigates, "",
		},
		"the signers of another domain": {
			[]*lens.Use{approves()}, []Rule{rule("role", "", csr, "signers", "approve", "example.org/*")},
			marker + csr + ",resources=signers,resourceNames=example.com/ship,verbs=approve\n" + frigates, "missing: approve signers." + csr + ": approving\nunused: approve signers." + csr + "\n",
		},
		"all signers": {
			[]*lens.Use{approves()}, []Rule{rule("role", "", csr, "signers", "approve")},
			marker + csr + ",resources=signers,resourceNames=example.com/ship,verbs=approve\n" + frigates, "broader: approve signers." + csr + ": all names, used only for example.com/ship\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			granted := Granted{Source: "roles", Rules: append(test.rules, grantedWatches)}
			report := Compare(Merge([]*Recording{recorded(append(test.uses, watches)...)}), granted, Options{})
			if got := proposed(report); got != test.want {
				t.Errorf("proposed is\n%swant\n%s", got, test.want)
			}
			if got := found(report.Findings); got != test.found {
				t.Errorf("found is\n%swant\n%s", got, test.found)
			}
		})
	}
}

// TestPlanEditsKeepsNames has a marker with a name that recordings alone do not lead to.
func TestPlanEditsKeepsNames(t *testing.T) {
	dir := testenv.Dir(t, map[string]string{"a.go": "package a\n\n// +kubebuilder:rbac:groups=core,resources=namespaces,resourceNames=kube-system,verbs=get\n"})
	markers, err := ReadMarkers(dir)
	if err != nil {
		t.Fatal(err)
	}
	report := Compare(Merge([]*Recording{recorded(asked(1, "get", "namespaces", "/kube-system"))}), FromMarkers(markers), Options{})
	if plan, err := PlanEdits(dir, markers, report.Grants, nil); err != nil || len(plan.Edits) > 0 {
		t.Errorf("got %+v, %v", plan, err)
	}
}

// TestUseOfPoliciesStays at the place where a rule grants it.
func TestUseOfPoliciesStays(t *testing.T) {
	granted := Granted{Source: "roles", Rules: []Rule{grantedWatches, rule("role", "ship-system", "security.openshift.io", "securitycontextconstraints", "use", "anyuid")}}
	const want = "+kubebuilder:rbac:groups=sea,resources=frigates,verbs=list;watch\n" +
		"+kubebuilder:rbac:groups=security.openshift.io,resources=securitycontextconstraints,resourceNames=anyuid,verbs=use,namespace=ship-system\n"
	if got := proposed(Compare(Merge([]*Recording{recorded(watches)}), granted, Options{})); got != want {
		t.Errorf("proposed is\n%swant\n%s", got, want)
	}
}
