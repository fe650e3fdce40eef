// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"io/fs"
	"path"
	"strings"
	"text/template"
)

//go:embed all:templates
var embedded embed.FS

// templates has the templates, each with .tmpl at the end of its name.
var templates = func() fs.FS {
	sub, err := fs.Sub(embedded, "templates")
	if err != nil {
		panic(err) // the name of the folder is wrong: found by any test
	}
	return sub
}()

const templateSuffix = ".tmpl"

// view is what templates see.
type view struct {
	Project Project
	API     API
	Webhook Webhook
}

// render fills in a template. Go code is formatted.
func render(name string, data view) ([]byte, error) {
	text, err := fs.ReadFile(templates, name)
	if err != nil {
		return nil, fmt.Errorf("reading the template %s: %w", name, err)
	}
	parsed, err := template.New(name).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("reading the template %s: %w", name, err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, data); err != nil {
		return nil, fmt.Errorf("executing the template %s: %w", name, err)
	}
	if path.Ext(strings.TrimSuffix(name, templateSuffix)) != ".go" {
		return out.Bytes(), nil
	}
	formatted, err := format.Source(bytes.TrimLeft(out.Bytes(), "\n"))
	if err != nil {
		return nil, fmt.Errorf("formatting the output of the template %s: %w", name, err)
	}
	return formatted, nil
}

// renderFolder fills in all templates below a folder. The results are called as the templates are, relative to it.
func renderFolder(folder string, data view) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(templates, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, templateSuffix) {
			return err
		}
		content, err := render(name, data)
		if err != nil {
			return err
		}
		files[strings.TrimSuffix(strings.TrimPrefix(name, folder+"/"), templateSuffix)] = content
		return nil
	})
	return files, err
}
