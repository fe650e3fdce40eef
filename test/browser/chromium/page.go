// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package chromium

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// Options say how a window is, and whom it is for.
type Options struct {
	Width, Height int64
	Dark          bool
	ReducedMotion bool
}

// Page is a page in a window of its own.
type Page struct {
	ctx context.Context
	end func()
	own string // host and port of its server

	mutex    sync.Mutex
	problems []string
	allowed  []string
}

// Open shows a page. Whatever it complains about, and whatever it asks of others than its own server, is noted.
func (b *Browser) Open(address string, o Options) (*Page, error) {
	own, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	p := &Page{own: own.Host}
	// Nothing is shared with other pages: neither storage nor which window is in front.
	p.ctx, p.end = chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	if err := answers(p.ctx, p.end); err != nil {
		return nil, fmt.Errorf("opening a window: %w", err)
	}
	if err := p.show(address, o); err != nil {
		p.Close()
		return nil, fmt.Errorf("opening %s: %w", address, err)
	}
	return p, nil
}

func (p *Page) show(address string, o Options) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(o.Width, o.Height)); err != nil {
		return err
	}
	scheme, motion := "light", "no-preference"
	if o.Dark {
		scheme = "dark"
	}
	if o.ReducedMotion {
		motion = "reduce"
	}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion},
	}}); err != nil {
		return err
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		return err
	}
	p.watch()
	return chromedp.Do(ctx, chromedp.Navigate(address))
}

// watch notes problems until the page is closed.
func (p *Page) watch() {
	messages, requests, crashes := chromedp.Console(p.ctx), chromedp.Events(p.ctx, network.RequestWillBeSent), chromedp.Events(p.ctx, inspector.TargetCrashed)
	go func() {
		for _, err := range crashes {
			if err == nil {
				p.note("its process crashed")
				p.end() // it would never answer
			}
			return
		}
	}()
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

// Close closes the window.
func (p *Page) Close() { p.end() }

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
	// A page that hangs does not notice its own limit.
	ctx, cancel := context.WithTimeout(p.ctx, 2*patience)
	defer cancel()
	_, err := chromedp.Run(ctx, chromedp.Poll[chromedp.Void]("Boolean("+expression+")", chromedp.WithPollingTimeout(patience)))
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
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Do(ctx, chromedp.MouseClickXY(x, y))
}

// Picture is what the page looks like, as PNG.
func (p *Page) Picture() ([]byte, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.CaptureScreenshot())
}
