// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import "testing"

func TestEqualButForVersion(t *testing.T) {
	const crd = "metadata:\n  annotations:\n    controller-gen.kubebuilder.io/version: v0.23.0\n  name: ships.example.com\n"
	for name, test := range map[string]struct {
		before, now string
		want        bool
	}{
		"the same":          {crd, crd, true},
		"another version":   {"metadata:\n  annotations:\n    controller-gen.kubebuilder.io/version: v0.9\n  name: ships.example.com\n", crd, true},
		"another name":      {"metadata:\n  annotations:\n    controller-gen.kubebuilder.io/version: v0.9\n  name: rafts.example.com\n", crd, false},
		"something before":  {"a: b\nmetadata:\n  annotations:\n    controller-gen.kubebuilder.io/version: v0.9\n  name: ships.example.com\n", crd, false},
		"no version":        {"metadata:\n  annotations:\n  name: ships.example.com\n", crd, false},
		"no version at all": {"a: b\n", "a: c\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := equalButForVersion([]byte(test.before), []byte(test.now)); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// A CRD is a leftover only if the module has other kinds of its group or, in the usual folder, of its domain. It may come from
// another operator, or from another module.
func TestGroupsOfLeftovers(t *testing.T) {
	const crd = "---\nkind: CustomResourceDefinition\nmetadata:\n  annotations:\n    controller-gen.kubebuilder.io/version: v0.1.0\n"
	for name, test := range map[string]struct {
		dir, generated, file string
		want                 bool
	}{
		"the same group":              {defaultCRDDir, "shop.example.com_shops.yaml", "shop.example.com_gones.yaml", true},
		"another group of the domain": {defaultCRDDir, "shop.example.com_shops.yaml", "gone.example.com_gones.yaml", true},
		"the domain itself":           {defaultCRDDir, "example.com_shops.yaml", "gone.example.com_gones.yaml", true},
		"another domain":              {defaultCRDDir, "shop.example.com_shops.yaml", "cert-manager.io_issuers.yaml", false},
		"a domain of many projects":   {defaultCRDDir, "jobset.x-k8s.io_jobsets.yaml", "cluster.x-k8s.io_machines.yaml", false},
		"an ending of two parts":      {defaultCRDDir, "shop.co.uk_shops.yaml", "bank.co.uk_accounts.yaml", false},
		"a group without a domain":    {defaultCRDDir, "shop_shops.yaml", "bank_accounts.yaml", false},
		"no kind is left":             {defaultCRDDir, "", "gone.example.com_gones.yaml", false},
		"the same group in a chart":   {"chart/crds", "shop.example.com_shops.yaml", "shop.example.com_gones.yaml", true},
		"the same domain in a chart":  {"chart/crds", "shop.example.com_shops.yaml", "gone.example.com_gones.yaml", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &plan{module: module{dir: "/m"}, config: &Config{CRD: CRDConfig{Dir: test.dir}}, enabled: map[string]bool{genCRD: true}}
			generated := map[string][]byte{"/m/" + test.dir + "/" + test.generated: nil, "/m/config/rbac/role.yaml": nil}
			if got := p.owns(test.dir+"/"+test.file, []byte(crd), generated); got != test.want {
				t.Errorf("it is a leftover: %v", got)
			}
		})
	}
}
