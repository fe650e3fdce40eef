// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"path"
	"path/filepath"
	"slices"

	applyargs "k8s.io/code-generator/cmd/applyconfiguration-gen/args"
	applygen "k8s.io/code-generator/cmd/applyconfiguration-gen/generators"
	clientargs "k8s.io/code-generator/cmd/client-gen/args"
	clientgen "k8s.io/code-generator/cmd/client-gen/generators"
	clienttypes "k8s.io/code-generator/cmd/client-gen/types"
	deepcopyargs "k8s.io/code-generator/cmd/deepcopy-gen/args"
	deepcopygen "k8s.io/code-generator/cmd/deepcopy-gen/generators"
	defaulterargs "k8s.io/code-generator/cmd/defaulter-gen/args"
	defaultergen "k8s.io/code-generator/cmd/defaulter-gen/generators"
	informerargs "k8s.io/code-generator/cmd/informer-gen/args"
	informergen "k8s.io/code-generator/cmd/informer-gen/generators"
	listerargs "k8s.io/code-generator/cmd/lister-gen/args"
	listergen "k8s.io/code-generator/cmd/lister-gen/generators"
	registerargs "k8s.io/code-generator/cmd/register-gen/args"
	registergen "k8s.io/code-generator/cmd/register-gen/generators"
	"k8s.io/code-generator/pkg/util"
	"k8s.io/gengo/v2"
	"k8s.io/gengo/v2/generator"
	openapiargs "k8s.io/kube-openapi/cmd/openapi-gen/args"
	openapigen "k8s.io/kube-openapi/pkg/generators"
)

// openAPIBase are packages that nearly every API refers to and that kube_codegen.sh therefore always adds.
var openAPIBase = []string{
	"k8s.io/apimachinery/pkg/apis/meta/v1",
	"k8s.io/apimachinery/pkg/runtime",
	"k8s.io/apimachinery/pkg/version",
	"k8s.io/apimachinery/pkg/api/resource",
}

// gengoGenerators returns the generators of code-generator in the plan, with the arguments that kube_codegen.sh would
// pass.
func (p *plan) gengoGenerators() []*gengoGenerator {
	var all []*gengoGenerator
	for _, one := range []*gengoGenerator{
		p.deepcopyGen(), p.defaulterGen(), p.registerGen(), p.applyConfigGen(), p.clientGen(), p.listerGen(), p.informerGen(), p.openAPIGen(),
	} {
		if len(one.inputs) > 0 && p.enabled[one.name] {
			all = append(all, one)
		}
	}
	return all
}

func (p *plan) header() string { return p.absoluteOrNone(p.config.HeaderFile) }

// absoluteOrNone is the path of a file that may not be wanted.
func (p *plan) absoluteOrNone(file string) string {
	if file == "" {
		return ""
	}
	return p.module.absolute(file)
}

// clientDir returns the folder of a part of the client.
func (p *plan) clientDir(part string) string {
	return p.module.absolute(path.Join(p.config.Client.Dir, part))
}

// clientPkg is the import path of a part of the client.
func (p *plan) clientPkg(part string) string {
	return p.module.importPath(path.Join(p.config.Client.Dir, part))
}

func (p *plan) deepcopyGen() *gengoGenerator {
	args := deepcopyargs.New()
	args.OutputFile, args.GoHeaderFile = deepcopyFile, p.header()
	return &gengoGenerator{
		name: genDeepcopy, tool: toolDeepcopyGen, inputs: p.importPaths(p.deepcopy), walks: true,
		nameSystems: deepcopygen.NameSystems(), order: deepcopygen.DefaultNameSystem(),
		targets: func(c *generator.Context) []generator.Target { return deepcopygen.GetTargets(c, args) },
	}
}

func (p *plan) defaulterGen() *gengoGenerator {
	args := defaulterargs.New()
	args.OutputFile, args.GoHeaderFile = defaultsFile, p.header()
	return &gengoGenerator{
		name: genDefaulter, tool: "defaulter-gen", inputs: p.importPaths(p.defaulter), walks: true,
		nameSystems: defaultergen.NameSystems(), order: defaultergen.DefaultNameSystem(),
		targets: func(c *generator.Context) []generator.Target { return defaultergen.GetTargets(c, args) },
	}
}

func (p *plan) registerGen() *gengoGenerator {
	args := registerargs.New()
	args.OutputFile, args.GoHeaderFile = registerFile, p.header()
	return &gengoGenerator{
		name: genRegister, tool: "register-gen", inputs: p.importPaths(p.register),
		nameSystems: registergen.NameSystems(), order: registergen.DefaultNameSystem(),
		targets: func(c *generator.Context) []generator.Target { return registergen.GetTargets(c, args) },
	}
}

func (p *plan) applyConfigGen() *gengoGenerator {
	args := applyargs.New()
	args.GoHeaderFile = p.header()
	args.OutputDir, args.OutputPkg = p.clientDir(applyPart), p.clientPkg(applyPart)
	g := &gengoGenerator{
		name: genApplyConfig, tool: "applyconfiguration-gen", inputs: p.importPaths(p.applyConfig),
		nameSystems: applygen.NameSystems(), order: applygen.DefaultNameSystem(),
		targets: func(c *generator.Context) []generator.Target { return applygen.GetTargets(c, args) },
	}
	switch p.config.Client.ApplySchema {
	case "":
	case schemaFromCRDs:
		g.prepare = func(l *loaded, out *outputs, staging string) error {
			<-p.crdsDone
			args.OpenAPISchemaFilePath = filepath.Join(staging, "schema.json")
			return p.writeApplySchema(l, out, args.OpenAPISchemaFilePath)
		}
	default:
		args.OpenAPISchemaFilePath = p.module.absolute(p.config.Client.ApplySchema)
	}
	return g
}

func (p *plan) clientGen() *gengoGenerator {
	args := clientargs.New()
	args.GoHeaderFile = p.header()
	args.OutputDir, args.OutputPkg = p.clientDir(clientsetPart), p.clientPkg(clientsetPart)
	args.ClientsetName = versionedClientset
	args.PluralExceptions = p.config.Client.PluralExceptions
	args.Groups = p.groupVersions()
	if p.applies() {
		args.ApplyConfigurationPackage = p.clientPkg(applyPart)
	}
	return &gengoGenerator{
		name: genClient, tool: "client-gen", inputs: p.importPaths(p.client),
		nameSystems: clientgen.NameSystems(util.PluralExceptionListToMapOrDie(args.PluralExceptions)), order: clientgen.DefaultNameSystem(),
		targets: func(c *generator.Context) []generator.Target { return clientgen.GetTargets(c, args) },
	}
}

// applies reports whether the clientset has Apply methods. That does not depend on which generators run this time.
func (p *plan) applies() bool { return !slices.Contains(p.config.Skip, genApplyConfig) }

// groupVersions are the packages with clients as client-gen's --input flags would make them.
func (p *plan) groupVersions() []clienttypes.GroupVersions {
	byGroup := map[string]*clienttypes.GroupVersions{}
	var names []string
	for _, dir := range p.client {
		name := p.groupDir(dir)
		if byGroup[name] == nil {
			byGroup[name] = &clienttypes.GroupVersions{PackageName: name, Group: clienttypes.Group(name)}
			names = append(names, name)
		}
		byGroup[name].Versions = append(byGroup[name].Versions, clienttypes.PackageVersion{
			Version: clienttypes.Version(path.Base(dir)), Package: p.module.importPath(dir),
		})
	}
	slices.Sort(names)
	groups := make([]clienttypes.GroupVersions, 0, len(names))
	for _, name := range names {
		groups = append(groups, *byGroup[name])
	}
	return groups
}

func (p *plan) listerGen() *gengoGenerator {
	args := listerargs.New()
	args.GoHeaderFile, args.PluralExceptions = p.header(), p.config.Client.PluralExceptions
	args.OutputDir, args.OutputPkg = p.clientDir(listersPart), p.clientPkg(listersPart)
	return &gengoGenerator{
		name: genLister, tool: "lister-gen", inputs: p.importPaths(p.client),
		nameSystems: listergen.NameSystems(util.PluralExceptionListToMapOrDie(args.PluralExceptions)), order: listergen.DefaultNameSystem(),
		targets: func(c *generator.Context) []generator.Target { return listergen.GetTargets(c, args) },
	}
}

func (p *plan) informerGen() *gengoGenerator {
	args := informerargs.New()
	args.GoHeaderFile, args.PluralExceptions = p.header(), p.config.Client.PluralExceptions
	args.OutputDir, args.OutputPkg = p.clientDir(informersPart), p.clientPkg(informersPart)
	args.VersionedClientSetPackage = p.clientPkg(path.Join(clientsetPart, versionedClientset))
	args.ListersPackage = p.clientPkg(listersPart)
	return &gengoGenerator{
		name: genInformer, tool: "informer-gen", inputs: p.importPaths(p.client),
		nameSystems: informergen.NameSystems(util.PluralExceptionListToMapOrDie(args.PluralExceptions)), order: informergen.DefaultNameSystem(),
		targets: func(c *generator.Context) []generator.Target { return informergen.GetTargets(c, args) },
	}
}

func (p *plan) openAPIGen() *gengoGenerator {
	args := openapiargs.New()
	args.GoHeaderFile, args.OutputFile = p.header(), openAPIFile
	args.OutputDir, args.OutputPkg = p.module.absolute(p.config.OpenAPI.Dir), p.module.importPath(p.config.OpenAPI.Dir)
	g := &gengoGenerator{
		name: genOpenAPI, tool: "openapi-gen",
		nameSystems: openapigen.NameSystems(), order: openapigen.DefaultNameSystem(),
		targets: func(c *generator.Context) []generator.Target {
			header, err := gengo.GoBoilerplate(args.GoHeaderFile, gengo.StdBuildTag, gengo.StdGeneratedBy)
			if err != nil {
				panic(err) // becomes the generator's error, as klog.Fatal does in the others
			}
			return openapigen.GetOpenAPITargets(c, args, header)
		},
	}
	if p.config.OpenAPI.Report != "" {
		g.report = p.module.absolute(p.config.OpenAPI.Report)
	}
	if len(p.openapi) > 0 {
		g.inputs = slices.Concat(openAPIBase, p.config.OpenAPI.ExtraPackages, p.importPaths(p.openapi))
	}
	return g
}
