// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"slices"
)

// hookImport is where the hook lies in the copy.
const (
	hookImport = module + "/pkg/internal/opdockhook"
	hookFile   = "pkg/internal/opdockhook/hook.go"
	hookName   = "opdockhook"
)

// patches are the additions to each file. Positions come from the syntax tree, because the text around
// them differs between versions.
var patches = []struct {
	file string
	// instead is the file to edit in versions without the first one.
	instead string
	// edit adds to a file; an error names what it has not found.
	edit func(*source) error
	// optional means that the build works without it, with fewer details.
	optional bool
}{
	{file: "pkg/internal/controller/controller.go", edit: markReconcile},
	{file: "pkg/cluster/cluster.go", instead: "pkg/manager/manager.go", edit: wrapConfig("New")}, // there is no cluster before 0.8
	{file: "pkg/client/client.go", edit: wrapConfig("New")},
	{file: "pkg/client/config/config.go", edit: wrapLoadedConfig, optional: true},
	{file: "pkg/cache/internal/cache_reader.go", edit: markReads, optional: true},
}

// source is a file that is edited.
type source struct {
	text    []byte
	tokens  *token.FileSet
	file    *ast.File
	inserts []insertion
}

type insertion struct {
	offset, remove int
	text           string
}

// patch returns a file with what edit adds.
func patch(name string, text []byte, edit func(*source) error) ([]byte, error) {
	tokens := token.NewFileSet()
	file, err := parser.ParseFile(tokens, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s := &source{text: text, tokens: tokens, file: file}
	if err := edit(s); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	// After the package clause, which comes before all imports.
	s.insert(file.Name.End(), 0, fmt.Sprintf("\n\nimport %s %q\n", hookName, hookImport))
	slices.SortStableFunc(s.inserts, func(a, b insertion) int { return cmp.Compare(a.offset, b.offset) })
	var out bytes.Buffer
	at := 0
	for _, one := range s.inserts {
		out.Write(text[at:one.offset])
		out.WriteString(one.text)
		at = one.offset + one.remove
	}
	out.Write(text[at:])
	formatted, err := format.Source(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return formatted, nil
}

func (s *source) offset(at token.Pos) int { return s.tokens.Position(at).Offset }

func (s *source) insert(at token.Pos, remove int, text string) {
	s.inserts = append(s.inserts, insertion{s.offset(at), remove, text})
}

// slice is the text of a part of the tree.
func (s *source) slice(from, to token.Pos) string { return string(s.text[s.offset(from):s.offset(to)]) }

// function finds a function, or the method of a type.
func (s *source) function(receiver, name string) (*ast.FuncDecl, error) {
	for _, declaration := range s.file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok && f.Name.Name == name && f.Body != nil && receiverOf(f) == receiver {
			return f, nil
		}
	}
	if receiver != "" {
		return nil, fmt.Errorf("type %s has no method %s", receiver, name)
	}
	return nil, fmt.Errorf("there is no function %s", name)
}

// receiverOf is the name of the type that a method has; empty for a function.
func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) != 1 {
		return ""
	}
	at := f.Recv.List[0].Type
	for {
		switch node := at.(type) {
		case *ast.StarExpr:
			at = node.X
		case *ast.IndexExpr:
			at = node.X
		case *ast.IndexListExpr:
			at = node.X
		case *ast.Ident:
			return node.Name
		default:
			return ""
		}
	}
}

// parameters names the parameters of a function, one by one.
func parameters(f *ast.FuncDecl) (names []*ast.Ident) {
	for _, field := range f.Type.Params.List {
		names = append(names, field.Names...)
	}
	return names
}

const (
	renamed = "opdockInner"
	// reconcilerField is the field of a Controller that holds the reconciler.
	reconcilerField = "Do"
)

// markReconcile puts a method around the call of the reconciler. From 0.10 on, the loop calls the controller's method
// Reconcile, which takes the place of the original one. Earlier loops call the reconciler itself, and call the new
// method instead.
func markReconcile(s *source) error {
	f, err := s.function("Controller", "Reconcile")
	if err != nil {
		return err
	}
	names := parameters(f)
	if len(names) == 0 || len(names) > 2 || f.Type.Results == nil || len(f.Type.Results.List) != 2 || len(f.Recv.List[0].Names) != 1 {
		return errors.New("method Reconcile has another signature")
	}
	receiver := f.Recv.List[0].Names[0].Name
	outer, inner := "Reconcile", receiver+"."+renamed+"Reconcile"
	if s.calls(f, f.Name.Name) != nil {
		s.insert(f.Name.Pos(), len(f.Name.Name), renamed+"Reconcile")
	} else {
		call := s.calls(f, reconcilerField, f.Name.Name)
		if call == nil {
			return errors.New("no method calls the reconciler")
		}
		outer, inner = "opdockReconcile", receiver+"."+reconcilerField+"."+f.Name.Name
		from := call.Sel.Pos()
		if field, ok := call.X.(*ast.SelectorExpr); ok {
			from = field.Sel.Pos()
		}
		s.insert(from, int(call.End()-from), outer)
	}
	request := names[len(names)-1].Name
	begin := fmt.Sprintf("opdockEnd := %s.BeginWithoutContext(%s.Name, %s)", hookName, receiver, request) // before 0.7
	arguments := request
	if len(names) == 2 {
		context := names[0].Name
		begin = fmt.Sprintf("%[1]s, opdockEnd := %[2]s.Begin(%[1]s, %[3]s.Name, %[4]s)", context, hookName, receiver, request)
		arguments = context + ", " + request
	}
	s.insert(f.End(), 0, fmt.Sprintf(`

func %[1]s %[2]s%[3]s (opdockResult %[4]s, opdockErr error) {
	%[5]s
	opdockReturned := false
	defer func() { opdockEnd(opdockResult, opdockErr, !opdockReturned) }()
	opdockResult, opdockErr = %[6]s(%[7]s)
	opdockReturned = true
	return opdockResult, opdockErr
}
`, s.slice(f.Recv.Pos(), f.Recv.End()), outer, s.slice(f.Type.Params.Pos(), f.Type.Params.End()),
		s.slice(f.Type.Results.List[0].Type.Pos(), f.Type.Results.List[0].Type.End()), begin, inner, arguments))
	return nil
}

// calls returns the selector of a call in another method of the same type, such as c.Do.Reconcile for the path Do and
// Reconcile; nil if there is none.
func (s *source) calls(of *ast.FuncDecl, path ...string) (found *ast.SelectorExpr) {
	for _, declaration := range s.file.Decls {
		f, isFunction := declaration.(*ast.FuncDecl)
		if !isFunction || f.Recv == nil || f.Body == nil || f == of || receiverOf(f) != receiverOf(of) || len(f.Recv.List[0].Names) != 1 {
			continue
		}
		receiver := f.Recv.List[0].Names[0].Name
		ast.Inspect(f.Body, func(node ast.Node) bool {
			if call, isCall := node.(*ast.CallExpr); isCall && isPath(call.Fun, append([]string{receiver}, path...)) {
				found, _ = call.Fun.(*ast.SelectorExpr)
			}
			return true
		})
	}
	return found
}

// isPath reports whether an expression consists of names with dots between them.
func isPath(expression ast.Expr, names []string) bool {
	last := names[len(names)-1]
	switch node := expression.(type) {
	case *ast.Ident:
		return len(names) == 1 && node.Name == last
	case *ast.SelectorExpr:
		return len(names) > 1 && node.Sel.Name == last && isPath(node.X, names[:len(names)-1])
	}
	return false
}

// wrapConfig makes the clients of a function add the reconcile to their requests.
func wrapConfig(function string) func(*source) error {
	return func(s *source) error {
		f, err := s.function("", function)
		if err != nil {
			return err
		}
		names := parameters(f)
		if len(names) == 0 || names[0].Name == "_" {
			return fmt.Errorf("function %s has another signature", function)
		}
		config := names[0].Name
		s.insert(f.Body.Lbrace+1, 0, fmt.Sprintf("\nif %[1]s != nil {\n%[1]s = rest.CopyConfig(%[1]s)\n%[1]s.Wrap(%[2]s.Transport)\n}\n", config, hookName))
		return nil
	}
}

// wrapLoadedConfig does the same for configurations that the operator loads for its own clients.
func wrapLoadedConfig(s *source) error {
	f, err := s.function("", "GetConfigWithContext")
	if err != nil {
		return err
	}
	names := parameters(f)
	if len(names) != 1 || names[0].Name == "_" {
		return errors.New("function GetConfigWithContext has another signature")
	}
	s.insert(f.Name.Pos(), len(f.Name.Name), renamed+f.Name.Name)
	s.insert(f.End(), 0, fmt.Sprintf(`

func GetConfigWithContext%s (*rest.Config, error) {
	opdockConfig, opdockErr := %sGetConfigWithContext(%s)
	if opdockErr == nil {
		opdockConfig.Wrap(%s.Transport)
	}
	return opdockConfig, opdockErr
}
`, s.slice(f.Type.Params.Pos(), f.Type.Params.End()), renamed, names[0].Name, hookName))
	return nil
}

// markReads reports what reconcilers read from caches.
func markReads(s *source) error {
	for _, one := range []struct{ method, namespace, name string }{
		{"Get", "%[2]s.Namespace", "%[2]s.Name"},
		{"List", "func() string { o := client.ListOptions{}; o.ApplyOptions(%[3]s); return o.Namespace }()", `""`},
	} {
		f, err := s.function("CacheReader", one.method)
		if err != nil {
			return err
		}
		names := parameters(f)
		if len(names) < 3 || len(f.Recv.List[0].Names) != 1 || names[1].Name == "_" {
			return fmt.Errorf("method %s has another signature", one.method)
		}
		ctx := names[0]
		if ctx.Name == "_" {
			s.insert(ctx.Pos(), len(ctx.Name), "ctx")
		}
		call := "\n%[4]s.Read(ctx, %[1]s.groupVersionKind.Group, %[1]s.groupVersionKind.Version, %[1]s.groupVersionKind.Kind, " + one.namespace + ", " + one.name + ")\n"
		s.insert(f.Body.Lbrace+1, 0, fmt.Sprintf(call, f.Recv.List[0].Names[0].Name, names[1].Name, names[len(names)-1].Name, hookName))
	}
	return nil
}
