// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/opdock/opdock/internal/filelock"
)

// BuildProgress describes the progress of a build.
type BuildProgress struct {
	Done     int           // packages compiled
	Total    int           // packages to compile; 0 if unknown
	Elapsed  time.Duration // since the build began
	Expected time.Duration // for the whole build, from the rate so far; 0 if unknown
	Message  string        // the current activity, for people
}

// String is one line without an end of line.
func (p BuildProgress) String() string {
	text := p.Message
	if p.Total > 0 {
		text += fmt.Sprintf(", %d of %d packages", p.Done, p.Total)
	}
	text += fmt.Sprintf(", %v", p.Elapsed.Round(time.Second))
	if p.Expected > 0 {
		text += fmt.Sprintf(" of about %v", p.Expected.Round(time.Second))
	}
	return text
}

// BuildBinary compiles the control plane to the file out, which is replaced atomically at the end. The
// source is the working copy that this program was built from if it exists, and otherwise the same
// version of the module from the module proxy. Concurrent builds to the same file wait for the first
// one. Without Go the error is a [*NoGoError].
//
// progress may be nil. It is called from one goroutine at a time: for each package, and at least once a
// second.
func BuildBinary(ctx context.Context, out string, progress func(BuildProgress)) error {
	from, err := findSource(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	builtMeanwhile := func() bool {
		info, err := os.Stat(out)
		return err == nil && info.ModTime().After(began)
	}
	return buildOnce(ctx, from, out, progress, builtMeanwhile, func() error { return nil })
}

// buildOnce builds unless another process has done so by the time it is this one's turn. Still in turn,
// it calls built after the binary was put in place.
func buildOnce(ctx context.Context, from *source, out string, progress func(BuildProgress), enough func() bool, built func() error) error {
	out = absolute(out)
	if err := findGo(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o750); err != nil {
		return fmt.Errorf("building %s: %w", binaryName, err)
	}
	t := startTracking(progress)
	defer t.stop()
	turn, err := awaitTurn(ctx, out+".lock", t)
	if err != nil {
		return fmt.Errorf("building %s: %w", binaryName, err)
	}
	defer turn.Close()
	if enough() {
		return nil
	}
	if err := build(ctx, from, out, t); err != nil {
		return fmt.Errorf("building %s: %w", binaryName, err)
	}
	return built()
}

// awaitTurn returns a locked file. To close it ends the turn, and so does the end of the process.
func awaitTurn(ctx context.Context, path string, t *tracker) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = filelock.Exclusive(f)
	if errors.Is(err, filelock.ErrHeld) {
		t.doing("waiting for another process that is building it")
		err = filelock.Await(ctx, f, 10*lockPoll)
	}
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, filelock.ErrHeld):
		err = fmt.Errorf("canceled while waiting for another process that is building it: %w", ctx.Err())
	default:
		err = fmt.Errorf("locking %s: %w", path, err)
	}
	f.Close()
	return nil, err
}

func build(ctx context.Context, from *source, out string, t *tracker) error {
	t.doing("listing the packages to compile")
	folder, err := from.folder(ctx, t.line)
	if err != nil {
		return t.explain(ctx, err)
	}
	stale, err := countStale(ctx, folder, t)
	if err != nil {
		return t.explain(ctx, fmt.Errorf("listing packages in %s: %w", folder, err))
	}
	t.compiling(stale)

	// The name is fixed, because the lock allows one build at a time. This build replaces the leftovers of
	// a killed one.
	temporary := out + ".building"
	if err := os.RemoveAll(temporary); err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	if err := os.Mkdir(temporary, 0o750); err != nil {
		return err
	}
	made := filepath.Join(temporary, binaryName)
	args := append([]string{"build", "-v", "-o", made}, buildFlags()...)
	if _, err := runGo(ctx, folder, t.line, append(args, binaryPackage)...); err != nil {
		return t.explain(ctx, fmt.Errorf("compiling in %s: %w", folder, err))
	}
	return os.Rename(made, out)
}

// countStale does what downloading there is to do. The main package always counts as stale to go list,
// because it is not installed.
func countStale(ctx context.Context, folder string, t *tracker) (int, error) {
	const inCache = "not installed but available in build cache"
	args := append([]string{"list", "-deps", "-f", `{{if and .Stale (ne .StaleReason "` + inCache + `")}}{{.ImportPath}}{{end}}`}, buildFlags()...)
	out, err := runGo(ctx, folder, t.line, append(args, binaryPackage)...)
	if err != nil {
		return 0, err
	}
	return len(strings.Fields(string(out))), nil
}

// buildFlags set the version as Kubernetes' own build does. There is no -trimpath among them: with it
// nothing of the build cache could be shared with the tests of the same packages, a second long build.
func buildFlags() []string {
	parts := strings.SplitN(strings.TrimPrefix(KubernetesVersion, "v"), ".", 3)
	linker := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		linker = append(linker,
			"-X "+pkg+".gitVersion="+KubernetesVersion,
			"-X "+pkg+".gitMajor="+parts[0],
			"-X "+pkg+".gitMinor="+parts[1],
			"-X "+pkg+".gitTreeState=clean",
		)
	}
	return []string{"-buildvcs=false", "-ldflags=" + strings.Join(linker, " ")}
}

// tracker turns the output of the go command into progress.
type tracker struct {
	tell func(BuildProgress)
	done chan struct{} // closed by stop
	idle chan struct{} // closed when the ticking has ended

	mu           sync.Mutex
	began        time.Time
	compileBegan time.Time // zero before
	now          BuildProgress
	said         []string // output of the go command other than package names
}

func startTracking(tell func(BuildProgress)) *tracker {
	if tell == nil {
		tell = func(BuildProgress) {}
	}
	t := &tracker{tell: tell, began: time.Now(), done: make(chan struct{}), idle: make(chan struct{})}
	go t.tick()
	return t
}

// tick keeps the elapsed time moving while a large package is compiled or the binary is linked.
func (t *tracker) tick() {
	defer close(t.idle)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			t.update(func() {})
		case <-t.done:
			return
		}
	}
}

// stop returns when there will be no more progress.
func (t *tracker) stop() {
	close(t.done)
	<-t.idle
}

func (t *tracker) update(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
	now := time.Now()
	t.now.Elapsed = now.Sub(t.began)
	t.now.Expected = 0
	if !t.compileBegan.IsZero() {
		t.now.Expected = expect(t.compileBegan.Sub(t.began), now.Sub(t.compileBegan), t.now.Done, t.now.Total)
	}
	t.tell(t.now)
}

// expect extrapolates the whole time from the packages compiled so far.
func expect(before, compiling time.Duration, done, total int) time.Duration {
	if done == 0 || total == 0 {
		return 0
	}
	return before + time.Duration(float64(compiling)*float64(max(total, done))/float64(done))
}

func (t *tracker) doing(message string) {
	t.update(func() { t.now.Message = message })
}

func (t *tracker) compiling(total int) {
	t.update(func() {
		t.compileBegan = time.Now()
		t.now.Total = total
		t.now.Message = "compiling"
		if total == 0 {
			t.now.Message = "linking"
		}
	})
}

// line handles one line of the go command's standard error.
func (t *tracker) line(line string) {
	t.update(func() {
		if text, ok := strings.CutPrefix(line, "go: downloading "); ok {
			t.now.Message = "downloading " + text
			return
		}
		if !isPackage(line) {
			t.said = append(t.said, line)
			return
		}
		if t.now.Total == 0 {
			return
		}
		t.now.Message = "compiling"
		// go list and go build may see different caches if another build runs at the same time.
		t.now.Done = min(t.now.Done+1, t.now.Total)
		if t.now.Done == t.now.Total {
			t.now.Message = "linking"
		}
	})
}

// isPackage distinguishes package names of go build -v from messages, which contain spaces or colons.
func isPackage(line string) bool {
	return line != "" && !strings.ContainsAny(line, " \t:") && line[0] != '#'
}

// explain adds the output of the go command to its error, or reports that the build was canceled.
func (t *tracker) explain(ctx context.Context, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ctx.Err() != nil {
		return fmt.Errorf("canceled after %v: %w; the next build continues from here", time.Since(t.began).Round(time.Second), ctx.Err())
	}
	if len(t.said) == 0 {
		return err
	}
	return fmt.Errorf("%w; it printed:\n  %s", err, strings.Join(t.said[max(0, len(t.said)-excerptLines):], "\n  "))
}
