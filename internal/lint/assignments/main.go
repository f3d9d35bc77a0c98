// Command assignments reports statements that assign three or more values at once, because readers have to count to see which value
// goes where. The results of one call are not counted, nor are tests and generated files. `make lint` runs it:
//
//	go vet -vettool=bin/assignments ./...
//
// With -fix, go vet writes one statement for each value where that means the same.
package main

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/token"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/unitchecker"
)

// maxValues is how many values a statement may assign.
const maxValues = 2

var analyzer = &analysis.Analyzer{
	Name: "assignments",
	Doc:  "report statements that assign three or more values at once",
	Run:  run,
}

func main() { unitchecker.Main(analyzer) }

func run(pass *analysis.Pass) (any, error) {
	for _, file := range pass.Files {
		if strings.HasSuffix(pass.Fset.File(file.Pos()).Name(), "_test.go") || ast.IsGenerated(file) {
			continue
		}
		inBlock := map[ast.Stmt]bool{} // where several statements may stand
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BlockStmt:
				mark(inBlock, n.List)
			case *ast.CaseClause:
				mark(inBlock, n.Body)
			case *ast.CommClause:
				mark(inBlock, n.Body)
			case *ast.AssignStmt:
				if len(n.Rhs) > maxValues {
					report(pass, n, split(n, inBlock[n]))
				}
			case *ast.ValueSpec:
				if len(n.Values) > maxValues {
					report(pass, n, nil)
				}
			}
			return true
		})
	}
	return nil, nil //nolint:nilnil // an analyzer without a result
}

func mark(inBlock map[ast.Stmt]bool, statements []ast.Stmt) {
	for _, s := range statements {
		inBlock[s] = true
	}
}

func report(pass *analysis.Pass, n ast.Node, lines [][]byte) {
	d := analysis.Diagnostic{Pos: n.Pos(), End: n.End(),
		Message: "three or more values are assigned at once: write one statement for each, or for those that belong together"}
	if lines != nil {
		d.SuggestedFixes = []analysis.SuggestedFix{{Message: "write one statement for each value",
			TextEdits: []analysis.TextEdit{{Pos: n.Pos(), End: n.End(), NewText: bytes.Join(lines, []byte("\n"))}}}}
	}
	pass.Report(d)
}

// split returns one statement for each value; none if a later one may depend on an earlier one.
func split(s *ast.AssignStmt, isInBlock bool) (lines [][]byte) {
	if !isInBlock {
		return nil
	}
	assigned := map[string]bool{}
	for i, value := range s.Rhs {
		if i > 0 && (mentions(value, assigned) || mentions(s.Lhs[i], assigned)) {
			return nil
		}
		var line bytes.Buffer
		one := &ast.AssignStmt{Lhs: s.Lhs[i : i+1], Tok: s.Tok, Rhs: s.Rhs[i : i+1]}
		if err := format.Node(&line, token.NewFileSet(), one); err != nil {
			return nil
		}
		lines = append(lines, line.Bytes())
		if target, ok := s.Lhs[i].(*ast.SelectorExpr); ok {
			assigned[target.Sel.Name] = true
		} else {
			ast.Inspect(s.Lhs[i], func(n ast.Node) bool { return note(n, assigned) })
		}
	}
	return lines
}

func note(n ast.Node, names map[string]bool) bool {
	if name, ok := n.(*ast.Ident); ok {
		names[name.Name] = true
	}
	return true
}

// mentions reports whether an expression has one of some names.
func mentions(e ast.Expr, names map[string]bool) bool {
	mentioned := map[string]bool{}
	ast.Inspect(e, func(n ast.Node) bool { return note(n, mentioned) })
	for name := range names {
		if mentioned[name] {
			return true
		}
	}
	return false
}
