// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"os"
	"testing"
)

// TestReplaceIsAllOrNothing kills the process, so to speak, after each step of replacing data, and opens the folder again.
func TestReplaceIsAllOrNothing(t *testing.T) {
	for name, test := range map[string]struct {
		steps []func(*Folder) error
		want  string
	}{
		"before the new data is in place": {want: "old"},
		"before the cluster was ready":    {steps: []func(*Folder) error{(*Folder).UseNewData}, want: "old"},
		"after it was ready":              {steps: []func(*Folder) error{(*Folder).UseNewData, (*Folder).Commit}, want: "new"},
		"after all":                       {steps: []func(*Folder) error{(*Folder).UseNewData, (*Folder).Commit, (*Folder).Sweep}, want: "new"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, map[string]string{
				"state.json": `{"format":1,"kubernetes":"v1.36.3","complete":"v1.36.3"}`,
				"etcd/data":  "old",
			})
			folder, err := Open(dir, running)
			if err != nil {
				t.Fatal(err)
			}
			write(t, dir, map[string]string{newData + "/data": "new"})
			for _, step := range test.steps {
				if err := step(folder); err != nil {
					t.Fatal(err)
				}
			}
			folder.release()

			if folder, err = Open(dir, running); err != nil {
				t.Fatal(err)
			}
			defer folder.release()
			if got, err := os.ReadFile(folder.Path(dataDir, "data")); err != nil || string(got) != test.want {
				t.Errorf("data is %q, %v; want %q", got, err, test.want)
			}
			for _, left := range []string{newData, oldData, goneData} {
				if _, err := os.Stat(folder.Path(left)); err == nil {
					t.Errorf("%s is left behind", left)
				}
			}
		})
	}
}

func TestIncompleteCopyIsNoState(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"state.json": `{"format":1,"kubernetes":"v1.36.3","port":4711,"filling":"/somewhere"}`,
		"etcd/data":  "half", newData + "/data": "half",
	})
	folder, err := Open(dir, running)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.release()
	if !folder.New || folder.Info.Port != 0 || folder.Info.Filling != "" {
		t.Errorf("new %v, info %+v", folder.New, folder.Info)
	}
	if _, err := os.Stat(folder.Path(dataDir)); err == nil {
		t.Error("the half copy is still there")
	}
}
