package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// logCall is a line of the log in the source.
type logCall struct {
	dir, level string
	keys       []string
}

// logCalls are the lines of the log in the source, by message, and the keys that loggers of a directory have.
type logCalls struct {
	byMessage map[string][]logCall
	loggers   map[string][]string
}

// readLogCalls reads the sources of both programs.
func readLogCalls(t *testing.T) logCalls {
	t.Helper()
	calls := logCalls{map[string][]logCall{}, map[string][]string{}}
	for _, root := range []string{"agent", "server", "internal", "cmd/vedette-agent", "cmd/vedette-server"} {
		err := filepath.WalkDir(filepath.Join("..", root), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					calls.add(filepath.ToSlash(strings.TrimPrefix(filepath.Dir(name), "../")), call)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return calls
}

// levelsOfMethods are the levels of slog's methods. Log has one as a parameter, which may be any, and line is a
// variable with a method.
var levelsOfMethods = map[string]string{"Debug": "DEBUG", "Info": "INFO", "Warn": "WARN", "Error": "ERROR", "DebugContext": "DEBUG", "InfoContext": "INFO",
	"WarnContext": "WARN", "ErrorContext": "ERROR", "Log": "", "line": ""}

func (c logCalls) add(dir string, call *ast.CallExpr) {
	name := ""
	switch function := call.Fun.(type) {
	case *ast.SelectorExpr:
		name = function.Sel.Name
	case *ast.Ident: // a variable with one of slog's methods
		name = function.Name
	}
	if name == "With" || name == "WithAttrs" {
		c.loggers[dir] = append(c.loggers[dir], keysOf(call.Args)...)
		return
	}
	level, isLog := levelsOfMethods[name]
	for i, arg := range call.Args[:min(len(call.Args), 3)] {
		if message := textOf(arg); isLog && message != "" {
			c.byMessage[message] = append(c.byMessage[message], logCall{dir, level, keysOf(call.Args[i+1:])})
			return
		}
	}
}

// keysOf returns the texts among arguments, also those of slog.String and the like. Values are rarely texts.
func keysOf(args []ast.Expr) (keys []string) {
	for _, arg := range args {
		if attribute, ok := arg.(*ast.CallExpr); ok && len(attribute.Args) > 0 {
			arg = attribute.Args[0]
		}
		if key := textOf(arg); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

func textOf(e ast.Expr) string {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value)
	return text
}

var logRow = regexp.MustCompile("(?m)^\\| (agent|server|both) \\| ([A-Z/]+) \\| `([^`]+)` \\| ([^|]*) \\|")

// TestDocumentedLogLines checks that each line of logs.md exists in the source of its program, with its level and
// its attributes: alerts match them.
func TestDocumentedLogLines(t *testing.T) {
	text, err := os.ReadFile("logs.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := logRow.FindAllStringSubmatch(string(text), -1)
	if len(rows) < 40 {
		t.Fatalf("got %d lines in logs.md", len(rows))
	}
	calls := readLogCalls(t)
	for _, row := range rows {
		program, levels, message := row[1], strings.Split(row[2], "/"), row[3]
		if len(calls.byMessage[message]) == 0 {
			t.Errorf("no program logs %q: alerts may match it, so keep the message, or write a decision about it", message)
			continue
		}
		parts := map[string][]string{"agent": {"agent"}, "server": {"server"}, "both": {"agent", "server"}}[program]
		for _, part := range parts {
			if !slices.ContainsFunc(calls.byMessage[message], func(c logCall) bool { return c.belongsTo(part) }) {
				t.Errorf("%q: the %s does not log it", message, part)
			}
		}
		for _, call := range calls.byMessage[message] {
			if !slices.ContainsFunc(parts, call.belongsTo) {
				continue
			}
			if call.level != "" && !slices.Contains(levels, call.level) {
				t.Errorf("%q: logged at level %s, documented with %s", message, call.level, levels)
			}
			for _, key := range regexp.MustCompile("`([a-zA-Z_]+)`").FindAllStringSubmatch(row[4], -1) {
				loggers := slices.Concat(calls.loggers[call.dir], calls.loggers[path.Dir(call.dir)]) // a package passes its own on
				if !slices.Contains(call.keys, key[1]) && !slices.Contains(loggers, key[1]) {
					t.Errorf("%q in %s: the attribute %s is documented, but the line has only %q, and its logger %q", message, call.dir, key[1], call.keys, loggers)
				}
			}
		}
	}
}

// belongsTo reports whether the agent or the server logs a line. Both use what is internal.
func (c logCall) belongsTo(program string) bool {
	return strings.HasPrefix(c.dir, "internal/") || c.dir == program || strings.HasPrefix(c.dir, program+"/") || c.dir == "cmd/vedette-"+program
}
