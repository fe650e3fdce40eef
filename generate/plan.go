// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The generators, by the names that users give them.
const (
	genDeepcopy    = "deepcopy"
	genCRD         = "crd"
	genRBAC        = "rbac"
	genWebhook     = "webhook"
	genDefaulter   = "defaulter"
	genRegister    = "register"
	genApplyConfig = "applyconfiguration"
	genClient      = "client"
	genLister      = "lister"
	genInformer    = "informer"
	genOpenAPI     = "openapi"
)

// Generators are all generators in the order in which results list them.
var Generators = []string{
	genDeepcopy, genCRD, genRBAC, genWebhook, genDefaulter, genRegister, genApplyConfig, genClient, genLister, genInformer, genOpenAPI,
}

// plan is the work of a run.
type plan struct {
	module module
	config *Config
	// enabled holds the generators that may run; leftovers of the others are kept.
	enabled map[string]bool
	// partial means that the run covers only some paths, so files of other paths are not leftovers.
	partial bool

	// The folders that each generator works on. A generator without any does not run.
	object      []string // deep copies by controller-gen
	deepcopy    []string // deep copies by deepcopy-gen
	crd         []string
	rbac        []string
	webhook     []string
	defaulter   []string
	register    []string
	client      []string
	applyConfig []string
	openapi     []string

	// crdsDone is closed when CRDs are made, or will not be made.
	crdsDone chan struct{}

	// references are import paths that generators read because markers name them.
	references []string
}

// versionName is what kube_codegen.sh takes for the folder of a version.
var versionName = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// newPlan decides by the markers.
func newPlan(m module, config *Config, found *discovery, o Options) (*plan, error) {
	p := &plan{module: m, config: config, enabled: map[string]bool{}, partial: len(o.Paths) > 0, crdsDone: make(chan struct{})}
	byHand := LeftOut(m.dir)
	for _, name := range Generators {
		wanted := slices.Contains(o.Only, name) || len(o.Only) == 0 && !slices.Contains(byHand, name)
		p.enabled[name] = wanted && !slices.Contains(config.Skip, name)
	}
	choose := func(generator string, wanted func(markerSet) bool) (dirs []string) {
		if !p.enabled[generator] {
			return nil
		}
		paths, limited := config.pathsInMakefile[generator]
		for _, one := range found.packages {
			if wanted(one.markers) && (!limited || isIn(one.dir, paths)) {
				dirs = append(dirs, one.dir)
			}
		}
		return dirs
	}
	p.object = choose(genDeepcopy, func(s markerSet) bool {
		switch config.Deepcopy.Tool {
		case toolControllerGen:
			return s.has(markerObject | markerDeepcopyGen)
		case toolDeepcopyGen:
			return s.has(markerObject) && !s.has(markerDeepcopyGen)
		default:
			return s.has(markerObject)
		}
	})
	p.deepcopy = choose(genDeepcopy, func(s markerSet) bool {
		switch config.Deepcopy.Tool {
		case toolControllerGen:
			return false
		case toolDeepcopyGen:
			return s.has(markerDeepcopyGen)
		default:
			return s.has(markerDeepcopyGen) && !s.has(markerObject)
		}
	})
	p.crd = choose(genCRD, func(s markerSet) bool { return s.has(markerKubebuilder) })
	if len(p.crd) > 0 && len(found.with(markerGroupName)) == 0 {
		p.crd = nil // markers of types that are not an API, such as types that only need deep copies
	}
	p.rbac = choose(genRBAC, func(s markerSet) bool { return s.has(markerRBAC) })
	p.webhook = choose(genWebhook, func(s markerSet) bool { return s.has(markerWebhook) })
	p.defaulter = choose(genDefaulter, func(s markerSet) bool { return s.has(markerDefaulter) })
	p.register = choose(genRegister, func(s markerSet) bool {
		// kubebuilder's projects have the same marker but register by hand, and both together would not compile.
		return s.has(markerRegister) || s.has(markerGroupName) && s.has(markerClient|markerDeepcopyGen) && !s.has(codeRegisters)
	})
	p.openapi = choose(genOpenAPI, func(s markerSet) bool { return s.has(markerOpenAPI) })
	if err := p.planClient(found); err != nil {
		return nil, err
	}
	p.chooseFolders(found)
	for _, one := range found.packages {
		p.references = append(p.references, one.references...)
	}
	if len(p.roots()) == 0 {
		return nil, fmt.Errorf("%w: no package in %s has markers such as +kubebuilder:object:root=true, +k8s:deepcopy-gen=package or +genclient",
			ErrNothing, strings.Join(config.Paths, " "))
	}
	return p, nil
}

// planClient selects the packages that get clients: those with +genclient in a folder that is named like a version.
func (p *plan) planClient(found *discovery) error {
	byGroupVersion := map[string]string{}
	for _, dir := range found.with(markerClient) {
		if !versionName.MatchString(path.Base(dir)) {
			continue
		}
		p.client = append(p.client, dir)
		name := p.groupDir(dir) + "/" + path.Base(dir)
		if other, taken := byGroupVersion[name]; taken {
			return fmt.Errorf("packages %s and %s would get the same client: clients are named after the last two directories, which are %s for both",
				other, dir, name)
		}
		byGroupVersion[name] = dir
	}
	if len(p.client) == 0 || !p.enabled[genApplyConfig] {
		return nil
	}
	p.applyConfig = slices.Clone(p.client)
	for _, dir := range p.config.Client.ApplyPackages {
		p.applyConfig = append(p.applyConfig, path.Clean(dir))
	}
	slices.Sort(p.applyConfig)
	p.applyConfig = slices.Compact(p.applyConfig)
	return nil
}

// groupDir returns the name of the folder above the version, which clients use as the name of the group.
func (p *plan) groupDir(dir string) string {
	return path.Base(path.Dir(p.module.importPath(dir)))
}

func (p *plan) chooseFolders(found *discovery) {
	p.config.Client.Dir = cmp.Or(p.config.Client.Dir, found.clientDir())
	if p.config.Client.Dir == "" {
		p.config.Client.Dir = "client"
		if len(p.client) > 0 && !slices.ContainsFunc(p.client, func(dir string) bool { return !strings.HasPrefix(dir, "pkg/") }) {
			p.config.Client.Dir = "pkg/client"
		}
	}
	if p.config.OpenAPI.Dir == "" {
		p.config.OpenAPI.Dir = path.Join(p.config.Client.Dir, "openapi")
	}
}

// roots are all folders that any generator works on.
func (p *plan) roots() []string {
	all := slices.Concat(p.typeRoots(), p.rbac, p.webhook)
	slices.Sort(all)
	return slices.Compact(all)
}

// typeRoots returns the folders whose types are generated for. Of the others only comments are read, because loading
// them would be expensive: they are controllers, which import a lot.
func (p *plan) typeRoots() []string {
	all := slices.Concat(p.object, p.deepcopy, p.crd, p.defaulter, p.register, p.openapi)
	if p.clientEnabled() {
		all = append(all, p.client...)
	}
	all = append(all, p.applyConfig...)
	slices.Sort(all)
	return slices.Compact(all)
}

func (p *plan) clientEnabled() bool {
	return p.enabled[genApplyConfig] || p.enabled[genClient] || p.enabled[genLister] || p.enabled[genInformer]
}

// commentRoots returns the folders of which only comments are read.
func (p *plan) commentRoots() []string {
	types := p.typeRoots()
	all := slices.DeleteFunc(slices.Concat(p.rbac, p.webhook), func(dir string) bool { return slices.Contains(types, dir) })
	slices.Sort(all)
	return slices.Compact(all)
}

// importPaths turns folders of the module into import paths.
func (p *plan) importPaths(dirs []string) []string {
	paths := make([]string, 0, len(dirs))
	for _, dir := range dirs {
		paths = append(paths, p.module.importPath(dir))
	}
	return paths
}
