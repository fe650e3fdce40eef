// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import "testing"

func TestConversionServer(t *testing.T) {
	serves := func(service ID) bool { return service == ID{Kind: "Service", Namespace: "sea", Name: "hooks"} }
	for name, test := range map[string]struct {
		conversion string
		want       bool
	}{
		"none":              {"{strategy: None}", false},
		"a service":         {"{strategy: Webhook, webhook: {clientConfig: {service: {name: hooks, namespace: sea, port: 443}}}}", false},
		"a lost service":    {"{strategy: Webhook, webhook: {clientConfig: {service: {name: others, namespace: sea}}}}", true},
		"a session":         {"{strategy: Webhook, webhook: {clientConfig: {url: 'https://127.0.0.1:9443/convert'}}}", true},
		"some other server": {"{strategy: Webhook, webhook: {clientConfig: {url: 'https://convert.example.com/'}}}", false},
	} {
		definition := parse(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {conversion: "+test.conversion+"}}")[0]
		if got := isUnserved(definition, serves); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
