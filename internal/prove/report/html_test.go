// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/golden"
)

func htmlOf(t *testing.T, r *Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := HTML(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestHTMLGolden(t *testing.T) {
	for name, r := range map[string]*Report{"findings": sample(), "clean": clean(), "hostile": hostile()} {
		// The style is a file of its own.
		golden.Compare(t, "page-"+name+".html", strings.Replace(htmlOf(t, r), pageStyle, "…", 1))
	}
}

// The page loads nothing, runs nothing, and allows itself nothing.
func TestHTMLStandsAlone(t *testing.T) {
	style := regexp.MustCompile(`(?s)<style>(.*?)</style>`)
	tags := regexp.MustCompile(`<[a-z]+`)
	addresses := regexp.MustCompile(`(?:src|href)="([^"]*)"`)
	for name, r := range reports() {
		page := htmlOf(t, r)
		sum := sha256.Sum256([]byte(style.FindStringSubmatch(page)[1]))
		hash := strings.ReplaceAll(base64.StdEncoding.EncodeToString(sum[:]), "+", "&#43;")
		if !strings.Contains(page, "default-src &#39;none&#39;; style-src &#39;sha256-"+hash+"&#39;") {
			t.Errorf("%s: the policy does not name the hash of the style", name)
		}
		for _, tag := range tags.FindAllString(page, -1) {
			switch tag {
			case "<script", "<iframe", "<object", "<embed", "<form", "<base", "<img":
				t.Errorf("%s: the page has %s>", name, tag)
			}
		}
		for _, address := range addresses.FindAllStringSubmatch(page, -1) {
			if !strings.HasPrefix(address[1], "#") && !strings.HasPrefix(address[1], "data:image/svg") {
				t.Errorf("%s: the page refers to %s", name, address[1])
			}
		}
		if strings.Contains(page, " style=") || strings.Contains(page, " onclick") {
			t.Errorf("%s: an attribute that the policy forbids", name)
		}
		if strings.ContainsAny(page, "\x1b\x00\u202e\ufffd") || strings.Contains(page, "ZgotmplZ") {
			t.Errorf("%s: control characters, or a value that the template refused", name)
		}
	}
}

// Every link of the table leads to a finding of the page.
func TestHTMLLinks(t *testing.T) {
	for name, r := range reports() {
		page := htmlOf(t, r)
		for _, link := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(page, -1) {
			if n := strings.Count(page, ` id="`+link[1]+`"`); n != 1 {
				t.Errorf("%s: %s is there %d times", name, link[1], n)
			}
		}
	}
}
