// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package chromium

import (
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// A page whose process has crashed answers nothing. What waits for it must end.
func TestAPageCrashes(t *testing.T) {
	if Find() == "" {
		t.Skip("there is no Chromium; on Debian: apt-get install chromium")
	}
	browser, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer browser.Close()
	p, err := browser.Open("data:text/html,hello", Options{Width: 800, Height: 600})
	if err != nil {
		t.Fatal(err)
	}
	p.Allow("request to elsewhere")
	go chromedp.Call(p.ctx, page.Crash, cdp.Empty{}) //nolint:errcheck // it has no answer
	begun := time.Now()
	if err := p.Await("false"); err == nil || time.Since(begun) >= patience {
		t.Errorf("waiting for a crashed page ended after %s with: %v", time.Since(begun), err)
	}
	if !slices.Contains(p.Problems(), "its process crashed") {
		t.Errorf("problems: %q", p.Problems())
	}
	if other, err := browser.Open("data:text/html,other", Options{Width: 800, Height: 600}); err != nil {
		t.Errorf("another page: %v", err)
	} else if text, err := Get[string](other, "document.body.innerText"); err != nil || text != "other" {
		t.Errorf("another page says %q: %v", text, err)
	}
}
