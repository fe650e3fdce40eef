// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"cmp"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// makefileNames are in make's search order.
var makefileNames = []string{"GNUmakefile", "makefile", "Makefile"}

var (
	assignment = regexp.MustCompile(`^(?:export |override )? *([A-Za-z_][\w.-]*) *(\?|\+|:{0,3})= *(.*)$`)
	reference  = regexp.MustCompile(`\$(?:\(([\w.-]+)\)|\{([\w.-]+)\})`)
	callsTool  = regexp.MustCompile(`(?i)\bcontroller[-_]gen\b`)
	// changesFolder finds a call of controller-gen in another folder.
	changesFolder = regexp.MustCompile(`(?:^|[\s;&(])(?:cd|pushd)\s`)
	// hasUnknownWord finds a variable that may contain a generator, not one inside an option.
	hasUnknownWord = regexp.MustCompile(`(?:^|\s)["']?\$[({]`)
)

// toolOptions are the options of controller-gen, by generator and option. The output folder is the option dir.
type toolOptions map[string]map[string]string

// adoptMakefile adds the options that the project's Makefile passes to controller-gen, so both generate the
// same files. Settings in the configuration take precedence.
func (c *Config) adoptMakefile(m module) {
	told := optionsInMakefile(readMakefile(m.dir))
	option := func(generator, name string) string {
		value := told[generator][name]
		if strings.Contains(value, "$") {
			return "" // only make knows
		}
		return value
	}
	folder := func(generator string) string {
		if dir := option(generator, "dir"); dir != "" && within(m.dir, m.absolute(dir)) {
			return dir
		}
		return ""
	}
	truth := func(setting **bool, name string) {
		if value, err := strconv.ParseBool(option(genCRD, name)); err == nil && *setting == nil {
			*setting = &value
		}
	}
	if length, err := strconv.Atoi(option(genCRD, "maxDescLen")); err == nil && c.CRD.MaxDescLen == nil {
		c.CRD.MaxDescLen = &length
	}
	truth(&c.CRD.AllowDangerousTypes, "allowDangerousTypes")
	truth(&c.CRD.IgnoreUnexportedFields, "ignoreUnexportedFields")
	truth(&c.CRD.GenerateEmbeddedObjectMeta, "generateEmbeddedObjectMeta")
	c.CRD.Dir = cmp.Or(c.CRD.Dir, folder(genCRD))
	c.RBAC.Dir = cmp.Or(c.RBAC.Dir, folder(genRBAC))
	c.RBAC.RoleName = cmp.Or(c.RBAC.RoleName, option(genRBAC, "roleName"))
	c.RBAC.FileName = cmp.Or(c.RBAC.FileName, option(genRBAC, "fileName"))
	c.Webhook.Dir = cmp.Or(c.Webhook.Dir, folder(genWebhook))
	c.adoptHeaders(m, told, option)
}

// readMakefile returns the text of the Makefile in a folder, empty if there is none.
func readMakefile(dir string) string {
	for _, name := range makefileNames {
		if content, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			return string(content)
		}
	}
	return ""
}

// LeftOut returns the generators of manifests that the Makefile in a folder does not use, although it calls
// controller-gen for others. Their files are hand-written.
func LeftOut(dir string) []string { return leftOutIn(readMakefile(dir)) }

func leftOutIn(content string) (generators []string) {
	calls, variables := callsInMakefile(content)
	used := map[string]bool{}
	for _, call := range calls {
		call = expand(call, variables)
		if strings.Contains(call, "$(call ") {
			continue // it installs the tool
		}
		for generator := range optionsOfCall(call) {
			used[generator] = true
		}
		if _, arguments, _ := strings.Cut(call[callsTool.FindStringIndex(call)[1]:], " "); hasUnknownWord.MatchString(arguments) {
			return nil // only make knows
		}
	}
	manifests := []string{genCRD, genRBAC, genWebhook}
	if !slices.ContainsFunc(manifests, func(name string) bool { return used[name] }) {
		return nil // they are made elsewhere
	}
	return slices.DeleteFunc(manifests, func(name string) bool { return used[name] })
}

// pathsOf returns the folders that the Makefile calls controller-gen for, relative to the module and with /... for all below, by
// generator. A generator is not in it if it is called for the whole module, or if some of its paths are unknown.
func (m module) pathsOf(content string) map[string][]string {
	calls, variables := callsInMakefile(content)
	paths, unknown := map[string][]string{}, map[string]bool{}
	for _, call := range calls {
		call = expand(call, variables)
		found := m.pathsOfCall(call)
		for generator := range optionsOfCall(call) {
			paths[generator] = append(paths[generator], found...)
			unknown[generator] = unknown[generator] || len(found) == 0 || slices.Contains(found, "...")
		}
	}
	maps.DeleteFunc(paths, func(generator string, _ []string) bool { return unknown[generator] })
	return paths
}

// pathsOfCall returns nothing unless all paths of the call are known.
func (m module) pathsOfCall(call string) (paths []string) {
	if changesFolder.MatchString(call) {
		return nil
	}
	for _, word := range strings.Fields(strings.NewReplacer(`"`, "", "'", "", "{", "", "}", "").Replace(call)) {
		value, found := strings.CutPrefix(word, "paths=")
		if !found {
			continue
		}
		for one := range strings.SplitSeq(value, ";") {
			if below, inside := strings.CutPrefix(one, m.path+"/"); inside {
				one = "./" + below
			}
			if !strings.HasPrefix(one, "./") && one != "." || strings.ContainsAny(one, "$*?[,") {
				return nil
			}
			paths = append(paths, path.Clean(one))
		}
	}
	return paths
}

// isIn reports whether a folder is one of paths such as api/v1 or api/...
func isIn(dir string, paths []string) bool {
	return slices.ContainsFunc(paths, func(one string) bool {
		parent, all := strings.CutSuffix("/"+one, "/...")
		return dir == one || all && strings.HasPrefix("/"+dir+"/", parent+"/")
	})
}

// adoptHeaders does the same for headers. A call of controller-gen without a header means that its files have
// none, even if the project has a header for other files.
func (c *Config) adoptHeaders(m module, told toolOptions, option func(generator, name string) string) {
	exists := func(file string) bool {
		_, err := os.Stat(m.absolute(file))
		return err == nil
	}
	if header, known := told["object"]["headerFile"]; known && header == "" && c.HeaderFile == "" && c.Deepcopy.HeaderFile == nil {
		c.Deepcopy.HeaderFile = &header
	}
	if header := option("object", "headerFile"); header != "" && c.HeaderFile == "" && exists(header) {
		c.HeaderFile = header
	}
	if header := option(genCRD, "headerFile"); header != "" && c.YAMLHeaderFile == "" && exists(header) {
		c.YAMLHeaderFile = header
	}
	for _, generator := range []string{"object", genCRD} {
		c.Year = cmp.Or(c.Year, option(generator, "year"))
	}
}

// optionsInMakefile finds the calls of controller-gen. If a generator is called several times, only options on
// which the calls agree count: each call is for an unknown part of the project.
func optionsInMakefile(content string) toolOptions {
	calls, variables := callsInMakefile(content)
	agreed := toolOptions{}
	for _, call := range calls {
		for generator, options := range optionsOfCall(expand(call, variables)) {
			before, again := agreed[generator]
			if !again {
				agreed[generator] = options
			}
			for name, value := range before {
				if options[name] != value {
					delete(before, name)
				}
			}
		}
	}
	return agreed
}

// callsInMakefile finds the lines that call controller-gen, and the variables that they may refer to.
func callsInMakefile(content string) (calls []string, variables map[string]string) {
	variables = map[string]string{}
	for line := range strings.Lines(strings.ReplaceAll(content, "\\\n", " ")) {
		line = strings.TrimRight(line, "\r\n")
		switch match := assignment.FindStringSubmatch(line); {
		case strings.HasPrefix(line, "\t"):
			if callsTool.MatchString(line) && !strings.HasPrefix(strings.TrimLeft(line, "\t @-+"), "#") {
				calls = append(calls, line)
			}
		case match == nil:
		case match[2] == "+":
			variables[match[1]] += " " + match[3]
		case match[2] == "?" && variables[match[1]] != "":
		default:
			variables[match[1]] = match[3]
		}
	}
	return calls, variables
}

// optionsOfCall reads a command line such as: controller-gen crd:maxDescLen=0 output:crd:artifacts:config=config/crd/bases
func optionsOfCall(call string) toolOptions {
	told, folders := toolOptions{}, map[string]string{}
	for _, word := range strings.Fields(strings.NewReplacer(`"`, "", "'", "").Replace(call)) {
		generator, rest, _ := strings.Cut(word, ":")
		switch generator {
		case "crd", "rbac", "webhook", "object":
			told[generator] = map[string]string{}
			if generator == "object" {
				told[generator]["headerFile"] = "" // it has no header unless one is set
			}
			for option := range strings.SplitSeq(rest, ",") {
				if name, value, set := strings.Cut(option, "="); set {
					told[generator][name] = value
				}
			}
		case "output":
			generator, rule, _ := strings.Cut(rest, ":")
			_, dir, _ := strings.Cut(rule, "=")
			folders[generator], _, _ = strings.Cut(dir, ",")
		}
	}
	for generator, dir := range folders {
		if told[generator] != nil && dir != "" {
			told[generator]["dir"] = dir
		}
	}
	return told
}

// maxNesting is how deep variables may refer to variables; one that refers to itself has no end.
const maxNesting = 10

// expand replaces known variables.
func expand(text string, variables map[string]string) string {
	for range maxNesting {
		expanded := reference.ReplaceAllStringFunc(text, func(found string) string {
			match := reference.FindStringSubmatch(found)
			if value, known := variables[match[1]+match[2]]; known {
				return value
			}
			return found
		})
		if expanded == text {
			break
		}
		text = expanded
	}
	return text
}
