// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/deepcopy"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
	"sigs.k8s.io/controller-tools/pkg/rbac"
	"sigs.k8s.io/controller-tools/pkg/version"
	"sigs.k8s.io/controller-tools/pkg/webhook"
)

// controllerToolsVersion is what controller-gen of the version in go.mod writes into CRDs. Used as a library, it would
// write the version of this program.
const controllerToolsVersion = "v0.23.0"

// controllerGenerator is a generator of controller-tools.
type controllerGenerator struct {
	name      string
	generator genall.Generator
	dirs      []string // the folders that it works on
	output    string   // the folder for YAML; empty: the files go to their packages
}

// controllerGenerators returns the generators of controller-tools in the plan, CRDs first, because apply
// configurations may need them.
func (p *plan) controllerGenerators() []controllerGenerator {
	year := cmp.Or(p.config.Year, strconv.Itoa(time.Now().UTC().Year()))
	c := p.config
	yamlHeader := p.absoluteOrNone(c.YAMLHeaderFile)
	var all []controllerGenerator
	for _, one := range []controllerGenerator{
		{genCRD, crd.Generator{
			HeaderFile: yamlHeader, Year: year, MaxDescLen: c.CRD.MaxDescLen, AllowDangerousTypes: c.CRD.AllowDangerousTypes,
			IgnoreUnexportedFields: c.CRD.IgnoreUnexportedFields, GenerateEmbeddedObjectMeta: c.CRD.GenerateEmbeddedObjectMeta,
		}, p.crd, c.CRD.Dir},
		{genDeepcopy, deepcopy.Generator{HeaderFile: p.absoluteOrNone(c.deepcopyHeader()), Year: year}, p.object, ""},
		{genRBAC, rbac.Generator{HeaderFile: yamlHeader, Year: year, RoleName: c.RBAC.RoleName, FileName: c.RBAC.FileName}, p.rbac, c.RBAC.Dir},
		{genWebhook, webhook.Generator{HeaderFile: yamlHeader, Year: year}, p.webhook, c.Webhook.Dir},
	} {
		if len(one.dirs) > 0 {
			all = append(all, one)
		}
	}
	return all
}

// runControllerGen runs the generators of controller-tools one after another: they share one loader, which is not made
// for several goroutines. Which files are read only for their comments is found out while the packages are being loaded.
func (p *plan) runControllerGen(ctx context.Context, loading *loading, out *outputs, done func(Step)) error {
	crdsDone := sync.OnceFunc(func() { close(p.crdsDone) })
	defer crdsDone()
	all := p.controllerGenerators()
	if len(all) == 0 {
		return nil
	}
	commented, err := listFiles(ctx, p.module, p.commentRoots())
	l := loading.wait()
	if l == nil {
		return nil // load reports the reason
	}
	if err == nil {
		err = l.listErrors(commented)
	}
	if err != nil {
		return err
	}
	base, err := l.generationContext(all, commented)
	if err != nil {
		return err
	}
	var failures []error
	for _, one := range all {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		began := time.Now()
		into := &generatedFiles{dir: p.module.absolute(one.output), out: out}
		context := *base
		context.Roots = p.rootsOf(base.Roots, one.dirs)
		context.OutputRule = into
		if _, needed := one.generator.(genall.NeedsTypeChecking); !needed {
			context.Checker = nil
		}
		if err := guarded(func() error { return one.generator.Generate(&context) }); err != nil {
			failures = append(failures, p.problem(l, one.name, err))
			continue
		}
		if one.name == genCRD {
			crdsDone()
		}
		done(Step{Generator: one.name, Files: into.count, Duration: time.Since(began)})
	}
	return errors.Join(p.markerProblems(base.Roots), errors.Join(failures...))
}

// generationContext returns the context that controller-tools would create for packages that it loads itself.
func (l *loaded) generationContext(all []controllerGenerator, commented []*listedPackage) (*genall.GenerationContext, error) {
	roots, err := l.controllerPackages(commented)
	if err != nil {
		return nil, err
	}
	generators := make(genall.Generators, len(all))
	for i := range all {
		generators[i] = &all[i].generator
	}
	context := &genall.GenerationContext{
		Collector: &markers.Collector{Registry: &markers.Registry{}},
		Roots:     roots,
		InputRule: genall.InputFromFileSystem,
		Checker:   &loader.TypeChecker{NodeFilters: generators.CheckFilters()},
	}
	return context, generators.RegisterMarkers(context.Collector.Registry)
}

func (p *plan) rootsOf(roots []*loader.Package, dirs []string) (chosen []*loader.Package) {
	wanted := map[string]bool{}
	for _, path := range p.importPaths(dirs) {
		wanted[path] = true
	}
	for _, root := range roots {
		if wanted[root.PkgPath] {
			chosen = append(chosen, root)
		}
	}
	return chosen
}

// markerProblems returns the problems that the generators found in the packages: wrong markers, fields that cannot be
// in a schema. Like controller-gen, it omits type errors, because controller-gen type-checks only partially; load
// reports the real ones.
func (p *plan) markerProblems(roots []*loader.Package) error {
	found := problems{module: p.module}
	raw := make([]*packages.Package, 0, len(roots))
	for _, root := range roots {
		raw = append(raw, root.Package)
	}
	packages.Visit(raw, nil, func(one *packages.Package) {
		for _, err := range one.Errors {
			if err.Kind == packages.TypeError {
				continue
			}
			position := splitPosition(err.Pos)
			if !filepath.IsAbs(position.Filename) {
				position.Filename = p.dirOf(one)
				position.Line = 0
			}
			found.addAt(position, toolControllerGen, err.Msg)
		}
	})
	return found.err()
}

func (p *plan) dirOf(one *packages.Package) string {
	if len(one.CompiledGoFiles) > 0 {
		return filepath.Dir(one.CompiledGoFiles[0])
	}
	return one.PkgPath
}

// generatedFiles takes the files of one generator instead of the disk.
type generatedFiles struct {
	dir   string
	out   *outputs
	count int
}

// Open is called by the generators for each file.
func (g *generatedFiles) Open(p *loader.Package, name string) (io.WriteCloser, error) {
	dir := g.dir
	if p != nil {
		if len(p.CompiledGoFiles) == 0 {
			return nil, fmt.Errorf("package %s has no directory", p.PkgPath)
		}
		dir = filepath.Dir(p.CompiledGoFiles[0])
	}
	g.count++
	return &memoryFile{keep: func(content []byte) error {
		if filepath.Ext(name) == ".yaml" {
			var err error
			if content, err = withRequiredKeys(content); err != nil {
				return err
			}
		}
		return g.out.add(filepath.Join(dir, name), withToolVersion(content))
	}}, nil
}

// crdVersionAnnotation matches the line of a CRD that names its generator.
const crdVersionAnnotation = "\n    controller-gen.kubebuilder.io/version: "

// withToolVersion replaces this program's version in a CRD by that of controller-gen.
func withToolVersion(content []byte) []byte {
	own := crdVersionAnnotation + version.Version() + "\n"
	if strings.ContainsAny(version.Version(), ": ") { // YAML quotes it
		own = crdVersionAnnotation + strconv.Quote(version.Version()) + "\n"
	}
	return bytes.Replace(content, []byte(own), []byte(crdVersionAnnotation+controllerToolsVersion+"\n"), 1)
}
