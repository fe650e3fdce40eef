// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opdock/opdock/internal/prove/report"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/prove"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m))
}

// project copies the project to a repository of its own, with the tag v1.0.0.
func project(t *testing.T) (dir string) {
	t.Helper()
	testenv.ControlPlane(t)
	dir = testenv.Project(t, filepath.Join("..", ".."), "beacon", filepath.Join("testdata", "beacon"), filepath.Join("..", "prove", "testdata", "shared"))
	git(t, dir, "init", "--quiet")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "--quiet", "-m", "The first release")
	git(t, dir, "tag", "v1.0.0")
	return dir
}

func git(t *testing.T, dir string, arguments ...string) {
	t.Helper()
	command := exec.Command("git", append([]string{"-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"}, arguments...)...)
	command.Dir = dir
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v: %s", arguments, err, output)
	}
}

// edit replaces text in a file of the project.
func edit(t *testing.T, dir, name, before, after string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(content, []byte(before)) {
		t.Fatalf("%q is not in %s", before, name)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(content, []byte(before), []byte(after)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// upgrade upgrades from a release to the work tree. Without an image, the release is built.
func upgrade(t *testing.T, dir, from, image, state string) *report.Report {
	t.Helper()
	began := time.Now()
	campaign, err := prove.Run(t.Context(), prove.Options{
		Dir: dir, StateDir: state, Env: append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off"), ControlPlane: os.Getenv("OPDOCK_CONTROLPLANE"),
		Families: []string{"upgrade"}, UpgradeFrom: from, UpgradeImage: image, Say: func(text string) { t.Log(text) },
		Progress: func(p prove.Progress) {
			if p.Stage == "upgrading" {
				t.Logf("%s: %s", time.Since(began).Round(time.Millisecond), p.Text)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	report.Text(&text, campaign.Report, 110)
	t.Log("\n" + text.String())
	return campaign.Report
}

// build builds the image of a release.
func build(t *testing.T, dir string) (archive string) {
	t.Helper()
	archive = filepath.Join(t.TempDir(), "image.tar")
	command := exec.Command(testenv.Program(t), "build", "--quiet", "--dir", dir, "--output", archive)
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "OPDOCK_HOME="+t.TempDir())
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("opdock build: %v: %s", err, output)
	}
	return archive
}

// second is a version of the CRD that does not have all fields of the first, and is not converted.
const second = `  - name: v2
    served: true
    storage: false
    schema:
      openAPIV3Schema: {type: object, properties: {spec: {type: object}}}
`

// TestUpgrades has a release that only adds to the first one, and one that changes what exists.
func TestUpgrades(t *testing.T) {
	dir, released, state := project(t), filepath.Join(t.TempDir(), "released"), t.TempDir()
	if err := os.CopyFS(released, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	edit(t, dir, "config/crd/beacons.yaml", "reach: {type: integer, minimum: 0, maximum: 50}", "reach: {type: integer, minimum: 0, maximum: 60}\n              colour: {type: string}")
	edit(t, dir, "cmd/serve.go", `fmt.Fprintln(os.Stderr, err)`, `fmt.Fprintln(os.Stderr, "the operator ends:", err)`)
	t.Run("without effect", func(t *testing.T) {
		r := upgrade(t, dir, "v1.0.0", "", state)
		if len(r.Findings) > 0 || r.ExitCode() != 0 {
			t.Errorf("%d findings", len(r.Findings))
		}
		if len(r.Families) != 1 || r.Families[0].Name != "upgrade" || r.Families[0].Ran != 3 || r.Families[0].Clean != 3 {
			t.Errorf("families: %+v", r.Families)
		}
	})
	edit(t, dir, "cmd/main.go", `"whale"`, `"rapeseed"`)
	edit(t, dir, "cmd/main.go", `"coast.example.com/lamp"`, `"coast.example.com/light"`)
	edit(t, dir, "config/crd/beacons.yaml", "reach: {type: integer, minimum: 0, maximum: 60}", "range: {type: integer}")
	edit(t, dir, "config/crd/beacons.yaml", "  versions:\n", "  versions:\n"+second)
	t.Run("with effects", func(t *testing.T) {
		image := build(t, released)
		edit(t, released, "cmd/main.go", "func main", "func unused") // the image has the program
		r := upgrade(t, dir, released, image, state)
		if replay := r.Findings[0].Replay; !strings.HasSuffix(replay, "--upgrade-from "+released+" --upgrade-image "+image) {
			t.Errorf("the upgrade is repeated with %s", replay)
		}
		for _, want := range []struct {
			title, field string
			replays      int // of what does not follow from the CRDs and the objects alone
		}{
			{"The upgrade restarts the workload of Deployment default/cape", "spec.template.spec.containers[lamp].env[OIL].value", 2},
			{"Beacon default/cape loses data with the upgrade", "spec.reach", 0},
			{"The CRDs differ in a breaking way: beacons.coast.example.com v1 spec.reach (PropertyRemoved)", "spec.reach", 0},
			{"Beacon default/cape changes when a client reads and writes it in version v2", "spec.tower", 2},
			{"The deletion of Beacon default/cape does not end after the upgrade", "", 2},
			{"After the downgrade, Beacon default/cape is not what it was before the upgrade", "", 2},
		} {
			at := slices.IndexFunc(r.Findings, func(f report.Finding) bool { return f.Title == want.title })
			switch {
			case at < 0:
				t.Errorf("not found: %s", want.title)
			case want.field != "" && !slices.Contains(r.Findings[at].Fields, want.field):
				t.Errorf("%s: fields %v without %s", want.title, r.Findings[at].Fields, want.field)
			case r.Findings[at].Replays != want.replays || r.Findings[at].Again != want.replays:
				t.Errorf("%s: happened again in %d of %d replays", want.title, r.Findings[at].Again, r.Findings[at].Replays)
			}
		}
	})
}

// TestReleasesThatCannotBeRead names releases and images that do not exist or are something else.
func TestReleasesThatCannotBeRead(t *testing.T) {
	dir, state := project(t), t.TempDir()
	for _, test := range []struct{ from, image, want string }{
		{"v9.9.9", "", "v9.9.9"},
		{t.TempDir(), "", "is not the source of a project"},
		{"v1.0.0", filepath.Join(dir, "none.tar"), "no such file"},
		{"v1.0.0", filepath.Join(dir, "go.mod"), "unpacking it"},
		{"", filepath.Join(dir, "none.tar"), "needs a release to upgrade from"},
	} {
		_, err := prove.Run(t.Context(), prove.Options{
			Dir: dir, StateDir: state, Env: append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off"), ControlPlane: os.Getenv("OPDOCK_CONTROLPLANE"),
			UpgradeFrom: test.from, UpgradeImage: test.image,
		})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("from %q, image %q: %v", test.from, test.image, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(state, "upgrade-*")); len(left) > 0 || err != nil {
		t.Errorf("left are %v, %v", left, err)
	}
}
