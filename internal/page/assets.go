// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

// contentTypes are set here because the operating system's mapping differs from machine to machine.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

type asset struct {
	content     []byte
	contentType string
	tag         string
}

// assets are the files of the page, each with an ETag.
type assets map[string]asset

func newAssets(files fs.FS) (assets, error) {
	result := assets{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		kind, known := contentTypes[path.Ext(name)]
		if !known {
			return fmt.Errorf("%s: unknown content type", name)
		}
		sum := sha256.Sum256(content)
		result["/"+name] = asset{content, kind, `"` + hex.EncodeToString(sum[:8]) + `"`}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the page's files: %w", err)
	}
	result["/"] = result["/index.html"]
	return result, nil
}

func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	file, found := a[r.URL.Path]
	if !found {
		refuse(w, http.StatusNotFound, "there is no "+strings.ToValidUTF8(r.URL.Path, "?"))
		return
	}
	w.Header().Set("Content-Type", file.contentType)
	w.Header().Set("ETag", file.tag)
	w.Header().Set("Cache-Control", "no-cache") // the browser revalidates each time
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file.content))
}
