// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"errors"
	"go/ast"
	"go/token"
	"regexp"
	"strings"

	clientutil "k8s.io/code-generator/cmd/client-gen/generators/util"
)

// problem gives an error of a generator a place in the source. The generators that are built on gengo have none to offer,
// but their messages name types, packages or values of markers.
func (p *plan) problem(l *loaded, generator string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	found := problems{module: p.module}
	position := token.Position{}
	if l != nil {
		position = l.locate(p.roots(), err.Error())
	}
	found.addAt(position, generator, err.Error())
	return found.err()
}

// locate finds the position that a message is about: the marker it quotes, or else the type or the package that it
// names.
func (l *loaded) locate(dirs []string, message string) token.Position {
	var best token.Position
	longest := 0
	consider := func(name string, position token.Pos) {
		if len(name) > longest && mentions(message, name) {
			best, longest = l.fset.Position(position), len(name)
		}
	}
	for _, dir := range dirs {
		one := l.packages[l.module.importPath(dir)]
		if one == nil {
			continue
		}
		for _, file := range one.Syntax {
			consider(one.PkgPath, file.Package)
			for _, declaration := range file.Decls {
				general, ok := declaration.(*ast.GenDecl)
				if !ok || general.Tok != token.TYPE {
					continue
				}
				for _, spec := range general.Specs {
					if named, ok := spec.(*ast.TypeSpec); ok {
						consider(one.PkgPath+"."+named.Name.Name, named.Pos())
					}
				}
			}
		}
	}
	if marker, found := l.quotedMarker(dirs, message, best); found {
		return marker
	}
	return best
}

// mentions reports whether the message contains the name as a whole word.
func mentions(message, name string) bool {
	for rest := message; ; {
		at := strings.Index(rest, name)
		if at < 0 {
			return false
		}
		after := rest[at+len(name):]
		if after == "" || !isNameCharacter(after[0]) {
			return true
		}
		rest = after
	}
}

func isNameCharacter(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// quotedText finds the values that messages quote.
var quotedText = regexp.MustCompile(`"([^"]+)"`)

// quotedMarker finds the marker that a message quotes. If the type or the package is known, the marker must be there.
func (l *loaded) quotedMarker(dirs []string, message string, known token.Position) (token.Position, bool) {
	for _, dir := range dirs {
		one := l.packages[l.module.importPath(dir)]
		if one == nil {
			continue
		}
		for _, file := range one.Syntax {
			if known.Filename != "" && known.Filename != l.fset.Position(file.Package).Filename {
				continue
			}
			for _, comment := range markerComments(file) {
				name, value, _ := strings.Cut(strings.TrimLeft(comment.Text, "/ \t+"), "=")
				if len(name) < 3 || !strings.Contains(message, name) {
					continue
				}
				for _, quoted := range quotedText.FindAllStringSubmatch(message, -1) {
					if strings.HasPrefix(value, quoted[1]) {
						return l.fset.Position(comment.Pos()), true
					}
				}
			}
		}
	}
	return token.Position{}, false
}

// markerComments are the comments of a file that are markers.
func markerComments(file *ast.File) (markers []*ast.Comment) {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if text, found := strings.CutPrefix(comment.Text, "//"); found && strings.HasPrefix(strings.TrimLeft(text, " \t"), "+") {
				markers = append(markers, comment)
			}
		}
	}
	return markers
}

// checkClientMarkers checks +genclient markers before client-gen does, because client-gen does not report positions.
func (p *plan) checkClientMarkers(l *loaded) error {
	if !p.clientEnabled() {
		return nil
	}
	found := problems{module: p.module}
	for _, path := range p.importPaths(p.client) {
		if one := l.packages[path].listed; one.leftOut() { // client-gen would make a client that imports it
			found.addAt(token.Position{Filename: one.Dir}, "client-gen", one.Error.Err)
		}
		for _, file := range l.packages[path].Syntax {
			for _, group := range file.Comments {
				if _, err := clientutil.ParseClientGenTags(strings.Split(group.Text(), "\n")); err != nil {
					found.addAt(l.fset.Position(culprit(group, err).Pos()), "client-gen", err.Error())
				}
			}
		}
	}
	return found.err()
}

// culprit is the first marker of a comment that is wrong on its own, or else the first that is about clients.
func culprit(group *ast.CommentGroup, err error) *ast.Comment {
	var first *ast.Comment
	for _, comment := range group.List {
		text := strings.TrimLeft(comment.Text, "/ \t")
		if !strings.Contains(text, "genclient") {
			continue
		}
		if _, alone := clientutil.ParseClientGenTags([]string{text}); alone != nil && alone.Error() == err.Error() {
			return comment
		}
		if first == nil {
			first = comment
		}
	}
	if first == nil {
		return group.List[0]
	}
	return first
}
