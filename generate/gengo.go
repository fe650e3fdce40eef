// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/gengo/v2"
	"k8s.io/gengo/v2/generator"
	"k8s.io/gengo/v2/namer"
	"k8s.io/gengo/v2/parser"
)

// gengoGenerator is a generator that is built on gengo.
type gengoGenerator struct {
	name        string // as users call it
	tool        string // name of upstream's program, which is in the header of its files
	inputs      []string
	nameSystems namer.NameSystems
	order       string // the name system that types are sorted by
	targets     func(*generator.Context) []generator.Target
	walks       bool                                                // the parser walks more types while it runs
	prepare     func(l *loaded, out *outputs, staging string) error // if there is something to do before; may be nil
	report      string                                              // file for violations of the API conventions; empty: none
}

// run runs one generator, and returns the number of its files.
func (g *gengoGenerator) run(parsers *parserFactory, out *outputs, staging string) (count int, err error) {
	p, err := parsers.parserFor(g.inputs)
	if err != nil {
		return 0, err
	}
	if g.prepare != nil {
		if err := g.prepare(parsers.loaded, out, staging); err != nil {
			return 0, err
		}
	}
	err = guarded(func() error {
		c, err := g.newContext(parsers, p)
		if err != nil {
			return err
		}
		if g.walks {
			parsers.walking.Lock()
			defer parsers.walking.Unlock()
		} else {
			parsers.walking.RLock()
			defer parsers.walking.RUnlock()
		}
		for _, target := range g.targets(c) {
			files := &memoryFiles{generator: g, dir: target.Dir(), out: out}
			context := *c
			context.FileTypes = map[string]generator.FileType{generator.GoFileType: files, violationsFileType: violations{g.report, out}}
			if err := context.ExecuteTarget(stagedTarget{Target: target, dir: staging}); err != nil {
				return err
			}
			count += files.count
		}
		return nil
	})
	return count, err
}

func (g *gengoGenerator) newContext(parsers *parserFactory, p *parser.Parser) (*generator.Context, error) {
	parsers.walking.Lock()
	defer parsers.walking.Unlock()
	return generator.NewContext(p, g.nameSystems, g.order)
}

// stagedTarget keeps gengo from making the target's folder, which must not happen before everything has succeeded.
type stagedTarget struct {
	generator.Target
	dir string
}

func (t stagedTarget) Dir() string { return t.dir }

// memoryFiles takes the Go files of one target instead of the disk.
type memoryFiles struct {
	generator *gengoGenerator
	dir       string
	out       *outputs
	count     int
}

// AssembleFile is called by gengo for each file. Putting the parts together is left to gengo.
func (m *memoryFiles) AssembleFile(f *generator.File, _ string) error {
	f.Header = m.generator.header(f.Header)
	var source bytes.Buffer
	generator.NewGoFile().Assemble(&source, f)
	formatted, err := formatGo(source.Bytes())
	if err != nil {
		return fmt.Errorf("formatting %s: %w", f.Name, err)
	}
	m.count++
	return m.out.addUnsimplified(filepath.Join(m.dir, f.Name), formatted)
}

// header puts the name of upstream's program where gengo has put that of this one.
func (g *gengoGenerator) header(header []byte) []byte {
	self := filepath.Base(os.Args[0])
	self = strings.TrimSuffix(self, filepath.Ext(self))
	return bytes.Replace(header, generatedBy(self), generatedBy(g.tool), 1)
}

func generatedBy(name string) []byte {
	return []byte(strings.ReplaceAll(gengo.StdGeneratedBy, "GENERATOR_NAME", name))
}

// violationsFileType is what openapi-gen calls its list of violations of the API conventions.
const violationsFileType = "api-violation"

type violations struct {
	file string
	out  *outputs
}

func (v violations) AssembleFile(f *generator.File, _ string) error {
	if v.file == "" {
		return nil
	}
	return v.out.add(v.file, f.Body.Bytes())
}
