// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"

	"github.com/opdock/opdock/internal/projectfile"
)

// Webhook describes the webhooks of a kind in templates.
type Webhook struct {
	Defaulting bool
	Validation bool
	Conversion bool
	Spokes     []API // versions that are converted to and from the kind's
	Spoke      API   // the one that a file is about

	Dir    string
	Import string
	Alias  string // under which main imports it
	Root   string // relative path from Dir to the folder of the project
	Suffix string // of the paths under which webhooks are served

	HasImage    bool // the spec has a string of that name
	HasReplicas bool // the spec has a pointer to a number of that name
}

// Admission reports whether there is an admission webhook.
func (w Webhook) Admission() bool { return w.Defaulting || w.Validation }

// WebhookOptions selects the webhooks to create for a kind of the project.
type WebhookOptions struct {
	Dir                  string
	Group, Version, Kind string
	Defaulting           bool
	Validation           bool
	Conversion           bool
	// Spokes are the versions that are converted to and from Version. Default: all others.
	Spokes []string
}

// CreateWebhook plans webhooks for a kind.
func CreateWebhook(o WebhookOptions) (*Plan, error) {
	p, err := open(o.Dir)
	if err != nil {
		return nil, err
	}
	resource, err := p.findForWebhook(o)
	if err != nil {
		return nil, err
	}
	before := projectfile.Webhooks{}
	if resource.Webhooks != nil {
		before = *resource.Webhooks
	}
	after := before
	after.WebhookVersion = "v1"
	after.Defaulting, after.Validation, after.Conversion = before.Defaulting || o.Defaulting, before.Validation || o.Validation, before.Conversion || o.Conversion
	if o.Conversion {
		if after.Spoke, err = p.spokes(resource, o.Spokes); err != nil {
			return nil, err
		}
	}
	api := p.api(resource)
	if err := p.replaceWebhookFiles(api, before, after); err != nil {
		return nil, err
	}
	resource.Webhooks = &after
	if err := p.wireWebhook(api, p.webhook(api, after)); err != nil {
		return nil, err
	}
	return p.finish()
}

func (p *project) findForWebhook(o WebhookOptions) (*projectfile.Resource, error) {
	if !o.Defaulting && !o.Validation && !o.Conversion {
		return nil, wrongInput("no webhook was selected").hint("set at least one of --defaulting, --programmatic-validation and --conversion")
	}
	if len(o.Spokes) > 0 && !o.Conversion {
		return nil, wrongInput("--spoke needs --conversion").hint("add --conversion")
	}
	resource, err := p.find(o.Group, o.Version, o.Kind)
	if err != nil {
		return nil, err
	}
	if resource.API == nil {
		return nil, wrongInput("the types of %s are not part of this project: webhooks for them are not supported", o.Kind)
	}
	if w := resource.Webhooks; w != nil && (w.Defaulting || !o.Defaulting) && (w.Validation || !o.Validation) && (w.Conversion || !o.Conversion) {
		return nil, wrongInput("%s %s already has these webhooks", o.Kind, o.Version).
			hint("remove them: opdock delete webhook %s", gvkFlags(o.Group, o.Version, o.Kind))
	}
	return resource, nil
}

// find returns a resource of the project, or an error that lists the existing ones.
func (p *project) find(group, version, kind string) (*projectfile.Resource, error) {
	if version == "" || kind == "" {
		return nil, wrongInput("--version and --kind are required").hint("for example: --group ship --version v1 --kind Frigate")
	}
	if found := p.file.Find(group, version, kind); found != nil {
		return found, nil
	}
	wrong := wrongInput("%s of %s does not exist in this project", kind, strings.Trim(group+"/"+version, "/"))
	for i := range p.file.Resources {
		r := &p.file.Resources[i]
		_ = wrong.hint("existing: %s", gvkFlags(r.Group, r.Version, r.Kind))
	}
	return nil, wrong
}

func (p *project) spokes(hub *projectfile.Resource, wanted []string) ([]string, error) {
	var others []string
	for i := range p.file.Resources {
		other := &p.file.Resources[i]
		if other.Group != hub.Group || other.Kind != hub.Kind || other.Version == hub.Version || other.API == nil {
			continue
		}
		others = append(others, other.Version)
		if other.Webhooks != nil && other.Webhooks.Conversion {
			return nil, wrongInput("%s %s is already the version that the other versions are converted to", hub.Kind, other.Version)
		}
	}
	for _, version := range wanted {
		if !slices.Contains(others, version) {
			return nil, wrongInput("version %s of %s does not exist", version, hub.Kind).hint("create it: opdock create api %s", gvkFlags(hub.Group, version, hub.Kind))
		}
	}
	if len(others) == 0 {
		return nil, wrongInput("%s has no other version to convert", hub.Kind).hint("create one: opdock create api %s", gvkFlags(hub.Group, "v2", hub.Kind))
	}
	if len(wanted) == 0 {
		wanted = others
	}
	return wanted, nil
}

// webhook describes webhooks to templates.
func (p *project) webhook(api API, w projectfile.Webhooks) Webhook {
	made := Webhook{
		Defaulting: w.Defaulting, Validation: w.Validation, Conversion: w.Conversion,
		Dir: path.Join("internal/webhook", api.Version), Alias: "webhook" + api.Version, Root: "../../..",
		Suffix: strings.ReplaceAll(api.QualifiedGroup, ".", "-") + "-" + api.Version + "-" + api.Singular,
	}
	if p.MultiGroup && api.Group != "" {
		made.Dir = path.Join("internal/webhook", api.Group, api.Version)
		made.Alias, made.Root = "webhook"+api.Alias, "../../../.."
	}
	made.Import = path.Join(p.Repo, made.Dir)
	for _, version := range w.Spoke {
		if spoke := p.file.Find(api.Group, version, api.Kind); spoke != nil {
			made.Spokes = append(made.Spokes, p.api(spoke))
		}
	}
	made.HasImage = p.specHas(api, "Image", "string")
	made.HasReplicas = p.specHas(api, "Replicas", "*int32")
	return made
}

// specHas reports whether the spec of a kind has a field of that name and type.
func (p *project) specHas(api API, name, typeName string) bool {
	content, err := p.read(path.Join(api.Dir, api.Singular+"_types.go"))
	if err != nil || content == nil {
		return false
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "", content, parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	has := false
	ast.Inspect(parsed, func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok || spec.Name.Name != api.Kind+"Spec" {
			return true
		}
		fields, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range fields.Fields.List {
			source := string(content[files.Position(field.Type.Pos()).Offset:files.Position(field.Type.End()).Offset])
			has = has || source == typeName && slices.ContainsFunc(field.Names, func(i *ast.Ident) bool { return i.Name == name })
		}
		return true
	})
	return has
}

// webhookFiles are the files that belong to the webhooks of one kind.
func (p *project) webhookFiles(api API, w projectfile.Webhooks) (map[string][]byte, error) {
	files := map[string][]byte{}
	if !w.Defaulting && !w.Validation && !w.Conversion {
		return files, nil
	}
	data := view{Project: p.Project, API: api, Webhook: p.webhook(api, w)}
	add := func(name, template string) error {
		content, err := render(template, data)
		files[name] = content
		return err
	}
	if err := add(path.Join(data.Webhook.Dir, api.Singular+"_webhook.go"), "webhook/webhook.go.tmpl"); err != nil {
		return nil, err
	}
	if err := add(path.Join(data.Webhook.Dir, api.Singular+"_webhook_test.go"), "webhook/webhook_test.go.tmpl"); err != nil {
		return nil, err
	}
	if !w.Conversion {
		return files, nil
	}
	if err := add(path.Join(api.Dir, api.Singular+"_conversion.go"), "webhook/hub.go.tmpl"); err != nil {
		return nil, err
	}
	for _, spoke := range data.Webhook.Spokes {
		data.Webhook.Spoke = spoke
		if err := add(path.Join(spoke.Dir, api.Singular+"_conversion.go"), "webhook/spoke.go.tmpl"); err != nil {
			return nil, err
		}
	}
	return files, add(p.conversionPatch(api), "webhook/crd_patch.yaml.tmpl")
}

func (p *project) conversionPatch(api API) string {
	name := api.Plural
	if p.MultiGroup && api.Group != "" {
		name = api.Group + "_" + name
	}
	return "config/crd/patches/webhook_in_" + name + ".yaml"
}

// replaceWebhookFiles adds webhooks to a kind that has some. It also adds them to edited files.
func (p *project) replaceWebhookFiles(api API, before, after projectfile.Webhooks) error {
	old, err := p.webhookFiles(api, before)
	if err != nil {
		return err
	}
	files, err := p.webhookFiles(api, after)
	if err != nil {
		return err
	}
	for name, content := range files {
		existing, err := p.read(name)
		if err != nil {
			return err
		}
		if existing != nil && !bytes.Equal(existing, old[name]) {
			if content, err = p.addToEdited(name, old[name], content, existing); err != nil {
				return err
			}
		}
		if err := p.write(name, content); err != nil {
			return err
		}
	}
	return nil
}

// addToEdited adds the new code to an edited file.
func (p *project) addToEdited(name string, old, next, edited []byte) ([]byte, error) {
	if merged, ok := mergeEdited(name, old, next, edited); ok && old != nil {
		return merged, nil
	}
	if isGo(name) && old != nil && sameCode(old, next) {
		return edited, nil // only a comment is new
	}
	return nil, wrongInput("%s has been edited where the new webhook would be added", name).
		hint("move the file away and try again, then bring your changes back; or add the webhook to it manually")
}

func webhookFragment(api API, w Webhook) string {
	return fmt.Sprintf(`	if os.Getenv("ENABLE_WEBHOOKS") != "false" {
		if err := %s.Setup%sWebhookWithManager(mgr); err != nil {
			setupLog.Error(err, "unable to create webhook", "webhook", "%s")
			os.Exit(1)
		}
	}
`, w.Alias, api.Kind, api.Kind)
}
