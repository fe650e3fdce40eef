// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/hint"
)

// plainBuildInterval is the interval of progress lines without a terminal: often enough to see progress, rare
// enough for a CI log.
const plainBuildInterval = 10 * time.Second

// ControlPlaneBinary returns the path of the control plane binary. It builds the binary first if it does not exist.
func (a *App) ControlPlaneBinary(ctx context.Context, quiet bool) (string, error) {
	binary, err := a.Dock.FindBinary()
	var none *cluster.NoBinaryError
	if err == nil || !errors.As(err, &none) {
		return binary, err
	}
	err = a.ShowBuild(ctx, quiet, func(progress func(cluster.BuildProgress)) error {
		binary, err = a.Dock.EnsureBinary(ctx, progress)
		return err
	})
	return binary, err
}

// ShowBuild runs a build of the control plane and shows its progress.
func (a *App) ShowBuild(ctx context.Context, quiet bool, build func(func(cluster.BuildProgress)) error) error {
	d := a.NewDisplay(quiet)
	d.since = time.Time{} // the progress of a build says itself how long it has taken
	d.Title("Building the control plane from source. The first build takes minutes.")
	d.Run("listing the packages to build")
	stop := d.Animate()
	defer stop()

	started := a.Now()
	err := build((&buildProgress{display: d}).report)
	elapsed := a.Now().Sub(started)
	if err == nil {
		d.Done("built the control plane", elapsed)
		return nil
	}
	d.failed("building the control plane failed", elapsed)
	if ctx.Err() != nil {
		return hint.With(errors.New("interrupted while building the control plane"),
			"the next build continues from here")
	}
	var noGo *cluster.NoGoError
	if errors.As(err, &noGo) {
		return hint.With(fmt.Errorf("the control plane binary is missing, and Go is not installed to build it (%w)", noGo.Err),
			"install Go (https://go.dev/dl) and run this command again",
			"or use an existing binary: export OPDOCK_CONTROLPLANE=/path/to/opdock-controlplane")
	}
	return err
}

// buildProgress shows how far a build is: in one line that changes on a terminal, in a line now and then elsewhere.
type buildProgress struct {
	display *Display
	printed bool
	last    time.Duration // how far the build was when the last plain line was printed
}

func (b *buildProgress) report(p cluster.BuildProgress) {
	if b.display.Live() {
		b.display.Run(p.String())
		return
	}
	if b.printed && p.Elapsed-b.last < plainBuildInterval {
		return
	}
	b.printed, b.last = true, p.Elapsed
	b.display.Title("  %s", p)
}
