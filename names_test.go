package vedette_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

// TestAccountNames checks which names accounts can have, and which of them other services confuse.
func TestAccountNames(t *testing.T) {
	for name, want := range map[vedette.AccountName]string{
		"prod": "", "Prod": "", "prod eu": "", "дом-東京": "", "a/b": "", vedette.AccountName(strings.Repeat("n", 255)): "",
		"": "1 to 255 bytes", vedette.AccountName(strings.Repeat("n", 256)): "1 to 255 bytes",
		"prod ": "begin or end with a space", " prod": "begin or end with a space", "prod\u3000": "begin or end with a space",
		"prod\n": "printable", "pr\x00od": "printable", "pr\xffod": "printable",
		"a,prod": "comma or a semicolon", "prod;x": "comma or a semicolon", ".": "part of a URL", "..": "part of a URL",
	} {
		if err := name.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: got %v, want %q", name, err, want)
		}
	}
	for _, same := range [][2]vedette.AccountName{{"lab", "LAB"}, {"lab", "láb"}, {"lab", "ｌａｂ"}, {"pin", "pın"}, {"strict", "ſtrict"}, {"k", "\u212a"},
		{"lab", "la\u200bb"}, {"lab", "lAb"}} {
		if same[0].Folded() != same[1].Folded() {
			t.Errorf("got %q and %q, want the same folded names of %q", same[0].Folded(), same[1].Folded(), same)
		}
	}
	if vedette.AccountName("lab-1").Folded() == vedette.AccountName("lab-2").Folded() {
		t.Error("got the same folded name of two different accounts")
	}
}

// exactPackages decode what others send, and decide by the names in it.
var exactPackages = []string{"server/upstream", "server/authorize", "server/agentserver", "internal/operationjson"}

// namePackages compare names of accounts, agents, kinds, namespaces and objects.
var namePackages = []string{"server/store", "server/upstream", "server/authorize", "server/accounts", "server/agentserver", "server/assignment",
	"server/dispatch", "server/ingest", "internal/exactjson"}

// foldingFiles may ignore case, for the reason given.
var foldingFiles = map[string]string{
	"server/authorize/permissions.go":       "Spinnaker ignores the case of applications",
	"server/authorize/caller.go":            "Gate sends accounts in lower case; Config.HasSimilar makes this safe",
	"server/authorize/fiat.go":              "spaces around the message of an error",
	"server/upstream/credentials.go":        "headers and credentials that are masked",
	"server/upstream/loop.go":               "the header Via",
	"server/upstream/merge_applications.go": "Spinnaker ignores the case of applications",
	"server/upstream/merge_list.go":         "Clouddriver sorts by lower-case names",
	"server/store/migration_files.go":       "statements of SQL",
	"server/store/mysql.go":                 "log lines of the driver",
	"server/dispatch/history.go":            "spaces around a text for people",
}

// TestNamesAreComparedAsBytes checks that no code is added that takes two names for one: by ignoring
// case or spaces, or by encoding/json, which ignores the case of members and takes the last of two.
func TestNamesAreComparedAsBytes(t *testing.T) {
	folding := []string{"strings.EqualFold", "strings.ToLower", "strings.ToUpper", "strings.TrimSpace", "bytes.EqualFold", "bytes.ToLower", "bytes.TrimSpace"}
	decoding := []string{"json.Unmarshal", "json.NewDecoder"}
	for _, pkg := range namePackages {
		for _, file := range goFiles(t, pkg) {
			for _, call := range callsIn(t, file) {
				if slices.Contains(folding, call) && foldingFiles[file] == "" {
					t.Errorf("%s calls %s: names are equal if their bytes are; if it is not for names, add the file to foldingFiles with the reason", file, call)
				}
			}
		}
	}
	for _, pkg := range exactPackages {
		for _, file := range goFiles(t, pkg) {
			for _, call := range callsIn(t, file) {
				if slices.Contains(decoding, call) {
					t.Errorf("%s calls %s, which ignores the case of members and takes the last of two: use internal/exactjson", file, call)
				}
			}
		}
	}
}

func goFiles(t *testing.T, pkg string) []string {
	t.Helper()
	files, err := filepath.Glob(pkg + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("got no files of %s, %v", pkg, err)
	}
	return slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
}

// callsIn returns the functions of other packages that a file names, such as "strings.ToLower".
func callsIn(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := selector.X.(*ast.Ident); ok {
				calls = append(calls, pkg.Name+"."+selector.Sel.Name)
			}
		}
		return true
	})
	return calls
}
