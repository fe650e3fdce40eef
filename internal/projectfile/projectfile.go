// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gobuffalo/flect"
	"go.yaml.in/yaml/v3"
)

const (
	// Name is what the file is called.
	Name = "PROJECT"
	// Version is the only version of the file that can be changed.
	Version = "3"
	// GoLayout is the plugin whose layout of folders is known.
	GoLayout = "go.kubebuilder.io/v4"
	// BundleLayout is the name under which newer kubebuilders write GoLayout together with kustomize.
	BundleLayout = "base.go.kubebuilder.io/v4"
)

// ErrNoProject is returned where there is no PROJECT.
var ErrNoProject = errors.New("file PROJECT not found")

// File is the content of PROJECT.
type File struct {
	CLIVersion  string     `yaml:"cliVersion,omitempty"`
	Domain      string     `yaml:"domain,omitempty"`
	Layout      Layout     `yaml:"layout,omitempty"`
	MultiGroup  bool       `yaml:"multigroup,omitempty"`
	ProjectName string     `yaml:"projectName,omitempty"`
	Repo        string     `yaml:"repo,omitempty"`
	Resources   []Resource `yaml:"resources,omitempty"`
	Version     string     `yaml:"version"`

	document *yaml.Node // as it was read; nil for a new file
}

// Layout are the plugins that a project is made with. A single one may stand there without a list.
type Layout []string

// UnmarshalYAML takes a list, or names with commas in between.
func (l *Layout) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		for name := range strings.SplitSeq(node.Value, ",") {
			*l = append(*l, strings.TrimSpace(name))
		}
		return nil
	}
	return node.Decode((*[]string)(l))
}

// Resource is an API, a controller or both.
type Resource struct {
	API        *API      `yaml:"api,omitempty"`
	Controller bool      `yaml:"controller,omitempty"`
	Core       bool      `yaml:"core,omitempty"` // a kind of Kubernetes itself
	Domain     string    `yaml:"domain,omitempty"`
	External   bool      `yaml:"external,omitempty"` // a kind of another module
	Group      string    `yaml:"group,omitempty"`
	Kind       string    `yaml:"kind"`
	Module     string    `yaml:"module,omitempty"`
	Path       string    `yaml:"path,omitempty"`   // import path of the types
	Plural     string    `yaml:"plural,omitempty"` // empty if it is RegularPlural
	Version    string    `yaml:"version"`
	Webhooks   *Webhooks `yaml:"webhooks,omitempty"`

	node *yaml.Node // as it was read; nil for a new one
}

// API says that the types are part of the project.
type API struct {
	CRDVersion string `yaml:"crdVersion,omitempty"`
	Namespaced bool   `yaml:"namespaced,omitempty"`
}

// Webhooks are the webhooks of a resource.
type Webhooks struct {
	Conversion     bool     `yaml:"conversion,omitempty"`
	Defaulting     bool     `yaml:"defaulting,omitempty"`
	DefaultingPath string   `yaml:"defaultingPath,omitempty"`
	Spoke          []string `yaml:"spoke,omitempty"` // versions that are converted to and from this one
	Validation     bool     `yaml:"validation,omitempty"`
	ValidationPath string   `yaml:"validationPath,omitempty"`
	WebhookVersion string   `yaml:"webhookVersion,omitempty"`
}

// UnmarshalYAML also remembers where the resource stands, for the sake of what it does not know.
func (r *Resource) UnmarshalYAML(node *yaml.Node) error {
	type plain Resource
	if err := node.Decode((*plain)(r)); err != nil {
		return err
	}
	r.node = node
	return nil
}

// QualifiedGroup is the group as the API server knows it.
func (r *Resource) QualifiedGroup() string {
	switch {
	case r.Domain == "":
		return r.Group
	case r.Group == "":
		return r.Domain
	default:
		return r.Group + "." + r.Domain
	}
}

// PluralName is the name of the resource in paths and CRDs.
func (r *Resource) PluralName() string {
	if r.Plural != "" {
		return r.Plural
	}
	return RegularPlural(r.Kind)
}

// RegularPlural is the plural that kubebuilder and controller-gen make of a kind.
func RegularPlural(kind string) string { return flect.Pluralize(strings.ToLower(kind)) }

// Is reports whether the resource is the one of this name.
func (r *Resource) Is(group, version, kind string) bool {
	return r.Group == group && r.Version == version && r.Kind == kind
}

// Read reads the PROJECT of a folder. The error is ErrNoProject if there is none.
func Read(dir string) (*File, error) {
	name := filepath.Join(dir, Name)
	content, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s", ErrNoProject, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("reading PROJECT: %w", err)
	}
	file, err := Parse(content)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return file, nil
}

// Parse reads the content of a PROJECT.
func Parse(content []byte) (*File, error) {
	var document yaml.Node
	content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n")) // of which half would become part of comments
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("it is not a YAML mapping")
	}
	var file File
	if err := document.Decode(&file); err != nil {
		return nil, err
	}
	file.document = &document
	return &file, nil
}

// Supported returns why code cannot be added to a project, or nil.
func (f *File) Supported() error {
	if f.Version == "" {
		return errors.New("its PROJECT file has no version")
	}
	if f.Version != Version {
		return fmt.Errorf("its PROJECT file has version %q, but only version %q is supported", f.Version, Version)
	}
	for _, known := range []string{GoLayout, BundleLayout} {
		if slices.Contains(f.Layout, known) {
			return nil
		}
	}
	return fmt.Errorf("its layout is %q, but only %s is supported", strings.Join(f.Layout, ","), GoLayout)
}

// Find returns the resource of this name, or nil.
func (f *File) Find(group, version, kind string) *Resource {
	for i := range f.Resources {
		if f.Resources[i].Is(group, version, kind) {
			return &f.Resources[i]
		}
	}
	return nil
}

// Remove takes the resource of this name out.
func (f *File) Remove(group, version, kind string) {
	f.Resources = slices.DeleteFunc(f.Resources, func(r Resource) bool { return r.Is(group, version, kind) })
}

// Clone returns a copy that can be changed on its own.
func (f *File) Clone() (*File, error) {
	content, err := f.Bytes()
	if err != nil {
		return nil, err
	}
	return Parse(content)
}

// header is what kubebuilder users expect to see in this file.
const header = `# What has been scaffolded in this project. opdock and kubebuilder keep it up to date: please do not edit it.
`

// Bytes returns the content to write.
func (f *File) Bytes() ([]byte, error) {
	if f.document == nil {
		f.document = &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode, HeadComment: strings.TrimSpace(header)}}}
	}
	if err := f.merge(); err != nil {
		return nil, fmt.Errorf("writing PROJECT: %w", err)
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(f.document); err != nil {
		return nil, fmt.Errorf("writing PROJECT: %w", err)
	}
	return out.Bytes(), encoder.Close()
}
