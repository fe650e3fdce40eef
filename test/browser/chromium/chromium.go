// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chromium opens pages in a headless Chromium and notes what they should not have done.
package chromium

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/chromedp/chromedp"
)

// patience is how long a page may take for what it is waited for.
const patience = 30 * time.Second

// Find returns the path of a Chromium, or an empty string.
func Find() string {
	if path := os.Getenv("OPDOCK_CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Browser is a Chromium that runs.
type Browser struct {
	ctx context.Context
	end []func()
}

// Start starts a Chromium, which takes longer than opening a page in it.
func Start(ctx context.Context) (*Browser, error) {
	path := Find()
	if path == "" {
		return nil, errors.New("there is no Chromium on this machine; on Debian: apt-get install chromium")
	}
	flags := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.DisableGPU,
		chromedp.Flag("disable-component-update", true), // nothing but the page is to be measured
	)
	if os.Geteuid() == 0 {
		flags = append(flags, chromedp.NoSandbox) // which root cannot have
	}
	allocator, endProcess := chromedp.NewExecAllocator(ctx, flags...)
	started, end := chromedp.NewContext(allocator)
	if err := answers(started, end); err != nil {
		endProcess()
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	return &Browser{ctx: started, end: []func(){end, endProcess}}, nil
}

// answers waits for the first answer in a context, and ends the context if there is none. A limit of the context itself
// would go on to limit what is done in it later.
func answers(ctx context.Context, end func()) error {
	limit := time.AfterFunc(patience, end)
	err := chromedp.Do(ctx)
	if !limit.Stop() {
		return fmt.Errorf("no answer within %s", patience)
	}
	if err != nil {
		end()
	}
	return err
}

// Close ends the browser and all its pages.
func (b *Browser) Close() {
	for _, end := range b.end {
		end()
	}
}
