// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"slices"
	"testing"
)

func TestChooseSamples(t *testing.T) {
	for name, test := range map[string]struct {
		names []string
		want  []string
	}{
		"none":             {[]string{"none"}, nil},
		"false":            {[]string{"false"}, nil},
		"a kind":           {[]string{"AppService"}, []string{"app_v1_appservice", "app_v1_appservice_full"}},
		"a kind, any case": {[]string{"robot"}, []string{"robot_v1_robot", "robot_v1_robot_full"}},
		"an object":        {[]string{"ring"}, []string{"kubegroup_v1_podcluster_full"}},
		"a file":           {[]string{"robot_v1_robot.yaml"}, []string{"robot_v1_robot"}},
		"an older version": {[]string{"app_v1alpha1_appservice"}, []string{"app_v1alpha1_appservice"}},
		"each only once":   {[]string{"shop", "app_v1_appservice_full", "shop"}, []string{"app_v1_appservice_full"}},
	} {
		t.Run(name, func(t *testing.T) {
			chosen, err := ChooseSamples(test.names)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range chosen {
				got = append(got, s.Name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAllSamplesAreDifferentObjects(t *testing.T) {
	chosen, err := ChooseSamples([]string{AllSamples})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, s := range chosen {
		object := s.Object.GetKind() + " " + s.Object.GetName()
		if other, twice := seen[object]; twice {
			t.Errorf("%s is in %s and in %s", object, other, s.Name)
		}
		seen[object] = s.Name
	}
	if len(seen) < 10 {
		t.Errorf("there are only %d samples", len(seen))
	}
}
