// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chromium opens pages in a headless Chromium and notes what they should not have done.
package chromium

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
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

// Options say how a window is, and whom it is for.
type Options struct {
	Width, Height int64
	Dark          bool
	ReducedMotion bool
}

// Page is a page in a browser of its own.
type Page struct {
	ctx context.Context
	end []func()
	own string // host and port of its server

	mutex    sync.Mutex
	problems []string
	allowed  []string
}

// Open shows a page. Whatever it complains about, and whatever it asks of others than its own server, is noted.
func Open(ctx context.Context, address string, o Options) (*Page, error) {
	path := Find()
	if path == "" {
		return nil, errors.New("there is no Chromium on this machine; on Debian: apt-get install chromium")
	}
	own, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	flags := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.WindowSize(int(o.Width), int(o.Height)), chromedp.DisableGPU,
		chromedp.Flag("disable-component-update", true), // nothing but the page is to be measured
	)
	if os.Geteuid() == 0 {
		flags = append(flags, chromedp.NoSandbox) // which root cannot have
	}
	p := &Page{own: own.Host}
	allocator, endBrowser := chromedp.NewExecAllocator(ctx, flags...)
	var endPage func()
	p.ctx, endPage = chromedp.NewContext(allocator)
	p.end = []func(){endPage, endBrowser}
	scheme, motion := "light", "no-preference"
	if o.Dark {
		scheme = "dark"
	}
	if o.ReducedMotion {
		motion = "reduce"
	}
	if err := chromedp.Do(p.ctx, chromedp.EmulateViewport(o.Width, o.Height)); err != nil {
		p.Close()
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	_, err = chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion},
	}})
	if err == nil {
		_, err = chromedp.Call(p.ctx, network.Enable, network.EnableParams{})
	}
	if err == nil {
		p.watch()
		err = chromedp.Do(p.ctx, chromedp.Navigate(address))
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("opening %s: %w", address, err)
	}
	return p, nil
}

// watch notes problems until the page is closed.
func (p *Page) watch() {
	messages, requests := chromedp.Console(p.ctx), chromedp.Events(p.ctx, network.RequestWillBeSent)
	go func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			if message.IsException() || message.Type == chromedp.ConsoleError || message.Type == chromedp.ConsoleWarning {
				p.note(fmt.Sprintf("%s %s (%s:%d)", message.Source, message, message.URL, message.Line+1))
			}
		}
	}()
	go func() {
		for request, err := range requests {
			if err != nil {
				return
			}
			if to, err := url.Parse(request.Request.URL); err != nil || to.Host != p.own {
				p.note("request to elsewhere: " + request.Request.URL)
			}
		}
	}()
}

func (p *Page) note(problem string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !slices.ContainsFunc(p.allowed, func(allowed string) bool { return strings.Contains(problem, allowed) }) {
		p.problems = append(p.problems, problem)
	}
}

// Allow lets problems pass from now on that contain the text.
func (p *Page) Allow(text string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.allowed = append(p.allowed, text)
}

// Problems are what was noted until now.
func (p *Page) Problems() []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return slices.Clone(p.problems)
}

// Close ends the browser.
func (p *Page) Close() {
	for _, end := range p.end {
		end()
	}
}

// Get returns what an expression is on the page.
func Get[T any](p *Page, expression string) (T, error) { return GetWithin[T](p, expression, patience) }

// GetWithin is like Get for what takes its time.
func GetWithin[T any](p *Page, expression string, within time.Duration) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, within)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Do runs statements on the page.
func (p *Page) Do(statements string) error {
	_, err := Get[bool](p, "(() => {"+statements+"; return true})()")
	return err
}

// Await waits until an expression is true on the page.
func (p *Page) Await(expression string) error {
	_, err := chromedp.Run(p.ctx, chromedp.Poll[chromedp.Void]("Boolean("+expression+")", chromedp.WithPollingTimeout(patience)))
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", expression, err)
	}
	return nil
}

// Press presses keys one after another, wherever the focus is. Package kb has names for those without a letter.
func (p *Page) Press(keys string) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Do(ctx, chromedp.KeyEvent(keys))
}

// Click clicks with the mouse at a place.
func (p *Page) Click(x, y float64) error {
	return chromedp.Do(p.ctx, chromedp.MouseClickXY(x, y))
}

// Picture is what the page looks like, as PNG.
func (p *Page) Picture() ([]byte, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.CaptureScreenshot())
}
