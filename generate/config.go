// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// ConfigFileName is the name of the configuration file in the module's folder.
const ConfigFileName = "opdock.yaml"

// File is the content of opdock.yaml.
type File struct {
	Generate Config `json:"generate"`
}

// Config selects what is generated, and where. All paths are relative to the module's folder. Everything has a default.
type Config struct {
	// Paths are the folders to search for markers, with /... for all below. Default: ./...
	Paths []string `json:"paths,omitempty"`
	// Skip names generators that do not run although there are markers for them.
	Skip []string `json:"skip,omitempty"`
	// HeaderFile is put at the top of Go files. Default: hack/boilerplate.go.txt, if there is one.
	HeaderFile string `json:"headerFile,omitempty"`
	// YAMLHeaderFile is put at the top of YAML files. Default: none.
	YAMLHeaderFile string `json:"yamlHeaderFile,omitempty"`
	// Year replaces YEAR in headers. Default: the current year.
	Year string `json:"year,omitempty"`

	Deepcopy DeepcopyConfig `json:"deepcopy,omitzero"`
	CRD      CRDConfig      `json:"crd,omitzero"`
	RBAC     RBACConfig     `json:"rbac,omitzero"`
	Webhook  WebhookConfig  `json:"webhook,omitzero"`
	Client   ClientConfig   `json:"client,omitzero"`
	OpenAPI  OpenAPIConfig  `json:"openapi,omitzero"`

	// pathsInMakefile are the paths of generators that the Makefile calls for a part of the module.
	pathsInMakefile map[string][]string
}

// DeepcopyConfig is about zz_generated.deepcopy.go.
type DeepcopyConfig struct {
	// Tool is controller-gen or deepcopy-gen, whose files differ slightly. Default: controller-gen for packages
	// with a +kubebuilder:object marker and deepcopy-gen for the others.
	Tool string `json:"tool,omitempty"`
	// HeaderFile replaces the header of deep copies from controller-gen; the empty string means no header. Default:
	// the header in the Makefile, or the header of all Go files.
	HeaderFile *string `json:"headerFile,omitempty"`
}

// CRDConfig configures CustomResourceDefinitions. The options are controller-gen's.
type CRDConfig struct {
	// Dir defaults to config/crd/bases.
	Dir                        string `json:"dir,omitempty"`
	MaxDescLen                 *int   `json:"maxDescLen,omitempty"`
	AllowDangerousTypes        *bool  `json:"allowDangerousTypes,omitempty"`
	IgnoreUnexportedFields     *bool  `json:"ignoreUnexportedFields,omitempty"`
	GenerateEmbeddedObjectMeta *bool  `json:"generateEmbeddedObjectMeta,omitempty"`
}

// RBACConfig is about the role that +kubebuilder:rbac markers describe.
type RBACConfig struct {
	// Dir defaults to config/rbac.
	Dir string `json:"dir,omitempty"`
	// RoleName defaults to manager-role.
	RoleName string `json:"roleName,omitempty"`
	// FileName defaults to role.yaml.
	FileName string `json:"fileName,omitempty"`
}

// WebhookConfig is about the manifests that +kubebuilder:webhook markers describe.
type WebhookConfig struct {
	// Dir defaults to config/webhook.
	Dir string `json:"dir,omitempty"`
}

// ClientConfig is about clientset, listers, informers and apply configurations.
type ClientConfig struct {
	// Dir defaults to where the project has clients already. Otherwise it is pkg/client if the types are below pkg, and client
	// if not.
	Dir string `json:"dir,omitempty"`
	// ApplyPackages are folders of packages that have no client but get apply configurations because kinds use their
	// types.
	ApplyPackages []string `json:"applyPackages,omitempty"`
	// ApplySchema generates apply configurations with functions that extract the fields of a field manager, and a fake
	// clientset that supports apply. It is crd for the CRDs of the same run, or a file with an OpenAPI document.
	// Default: none.
	ApplySchema string `json:"applySchema,omitempty"`
	// PluralExceptions are of the form Endpoints:Endpoints.
	PluralExceptions []string `json:"pluralExceptions,omitempty"`
}

// OpenAPIConfig configures the definitions that +k8s:openapi-gen markers request.
type OpenAPIConfig struct {
	// Dir defaults to openapi in the folder of the client.
	Dir string `json:"dir,omitempty"`
	// ExtraPackages are import paths of packages whose definitions are added.
	ExtraPackages []string `json:"extraPackages,omitempty"`
	// Report is a file that lists violations of the API conventions. Default: none.
	Report string `json:"report,omitempty"`
}

const (
	toolControllerGen = "controller-gen"
	toolDeepcopyGen   = "deepcopy-gen"

	defaultHeaderFile = "hack/boilerplate.go.txt"
	defaultCRDDir     = "config/crd/bases"
)

// loadConfig reads the configuration, overrides it with the options, and adds settings from the Makefile and the
// defaults that do not depend on the project.
func loadConfig(m module, o Options) (*Config, error) {
	config, err := readConfig(m, o.ConfigFile)
	if err != nil {
		return nil, err
	}
	config.adoptMakefile(m)
	override := func(setting *string, option, byDefault string) { *setting = cmp.Or(option, *setting, byDefault) }
	override(&config.HeaderFile, o.HeaderFile, "")
	override(&config.CRD.Dir, o.CRDDir, defaultCRDDir)
	override(&config.RBAC.Dir, o.RBACDir, "config/rbac")
	override(&config.RBAC.RoleName, "", "manager-role")
	override(&config.RBAC.FileName, "", "role.yaml")
	override(&config.Webhook.Dir, o.WebhookDir, "config/webhook")
	override(&config.Client.Dir, o.ClientDir, "")
	override(&config.OpenAPI.Dir, o.OpenAPIDir, "")
	if len(o.Paths) > 0 {
		config.Paths = o.Paths
	}
	if len(config.Paths) == 0 {
		config.Paths = []string{"./..."}
		config.pathsInMakefile = m.pathsOf(readMakefile(m.dir))
	}
	if config.HeaderFile == "" {
		if _, err := os.Stat(m.absolute(defaultHeaderFile)); err == nil {
			config.HeaderFile = defaultHeaderFile
		}
	}
	return config, config.validate(m, o)
}

func readConfig(m module, file string) (*Config, error) {
	chosen := file != ""
	if !chosen {
		file = filepath.Join(m.dir, ConfigFileName)
	}
	content, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) && !chosen {
		return &Config{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	var parsed File
	if err := yaml.UnmarshalStrict(content, &parsed); err != nil {
		// The prefixes of the YAML and JSON decoders do not help the user.
		message := strings.NewReplacer("error unmarshaling JSON: ", "", "while decoding JSON: ", "", "json: ", "", "error converting YAML to JSON: ", "").Replace(err.Error())
		return nil, fmt.Errorf("%s%s: %s", m.relative(file), lineOfField(string(content), message), message)
	}
	return &parsed.Generate, nil
}

// lineOfField returns ":LINE" for an unknown field, which the decoder names without its place; empty if several lines may be meant.
func lineOfField(content, message string) string {
	_, field, found := strings.Cut(message, `unknown field "`)
	if !found {
		return ""
	}
	field, _, _ = strings.Cut(field, `"`)
	key := regexp.MustCompile(`(^|[\s{,"'])` + regexp.QuoteMeta(field) + `["']?\s*:`)
	var place string
	for i, line := range strings.Split(content, "\n") {
		if !key.MatchString(line) {
			continue
		}
		if place != "" {
			return ""
		}
		place = fmt.Sprintf(":%d", i+1)
	}
	return place
}

func (c *Config) validate(m module, o Options) error {
	if tool := c.Deepcopy.Tool; tool != "" && tool != toolControllerGen && tool != toolDeepcopyGen {
		return fmt.Errorf("deepcopy.tool is %q: must be %s or %s", tool, toolControllerGen, toolDeepcopyGen)
	}
	for _, name := range slices.Concat(c.Skip, o.Only) {
		if !slices.Contains(Generators, name) {
			return fmt.Errorf("unknown generator %q; generators: %s", name, strings.Join(Generators, ", "))
		}
	}
	for _, exception := range c.Client.PluralExceptions {
		if name, plural, _ := strings.Cut(exception, ":"); name == "" || plural == "" || strings.Contains(plural, ":") {
			return fmt.Errorf("client.pluralExceptions contains %q: must have the form Kind:Plural", exception)
		}
	}
	for _, file := range c.textFiles() {
		if _, err := os.ReadFile(m.absolute(file)); err != nil {
			return fmt.Errorf("reading a file named in the configuration: %w", err)
		}
	}
	for _, dir := range []string{c.CRD.Dir, c.RBAC.Dir, c.Webhook.Dir, c.Client.Dir, c.OpenAPI.Dir} {
		if dir != "" && !within(m.dir, m.absolute(dir)) {
			return fmt.Errorf("the output directory %s is outside the module in %s", dir, m.dir)
		}
	}
	return nil
}

// textFiles are the files that the output depends on.
func (c *Config) textFiles() (files []string) {
	for _, file := range []string{c.HeaderFile, c.YAMLHeaderFile, c.Client.ApplySchema, c.deepcopyHeader()} {
		if file != "" && file != schemaFromCRDs {
			files = append(files, file)
		}
	}
	return files
}

// deepcopyHeader returns the header file of deep copies from controller-gen; empty for none.
func (c *Config) deepcopyHeader() string {
	if c.Deepcopy.HeaderFile != nil {
		return *c.Deepcopy.HeaderFile
	}
	return c.HeaderFile
}

// within reports whether a path is the folder or lies below it.
func within(dir, file string) bool {
	below, err := filepath.Rel(dir, file)
	return err == nil && below != ".." && !strings.HasPrefix(below, ".."+string(filepath.Separator))
}
