package vedette_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

// TestConfusingAccountNamesAreRejected checks which names accounts can have, and which of them other services confuse.
func TestConfusingAccountNamesAreRejected(t *testing.T) {
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
var exactPackages = []string{"server/upstream", "server/upstream/merging", "server/authorize", "server/agentserver", "internal/operationjson"}

// foldingFiles may ignore case or spaces, by the reason why.
var foldingFiles = map[string][]string{
	"Spinnaker ignores the case of applications, projects and its own words": {
		"server/authorize/permissions.go", "server/upstream/merging/applications.go", "server/upstream/index.go", "server/upstream/answers.go",
		"server/front50/applications.go",
		"server/clouddriver/applications/application_list.go", "server/clouddriver/applications/project.go", "server/clouddriver/web/query.go",
		"server/clouddriver/applications/server_group.go", "server/clouddriver/applications/server_group_batch.go", "server/clouddriver/applications/target.go",
		"server/clouddriver/manifests/status.go", "server/infrastructure/health.go", "server/manifest/selector.go", "server/manifest/strategy.go",
		"server/attributes/from_object.go", "server/config/task.go", "server/task/delete.go", "server/task/patch.go", "server/task/request.go",
		"server/task/description.go", "server/task/deploy.go", "server/manifest/description_types.go", "server/manifest/plan.go", "agent/operate/apply/mode.go", "agent/operate/delete.go",
		"agent/operate/patch.go", "server/api/operations/verbs.go", "agent/config/permissions.go",
	},
	"Clouddriver's searches find parts of names in any case, and its lists are sorted by lower-case names": {
		"server/clouddriver/search/request.go", "server/upstream/stream.go", "server/clouddriver/applications/load_balancer.go", "server/clouddriver/applications/view_object.go",
	},
	"Gate sends accounts in lower case; Config.HasSimilar makes this safe": {"server/authorize/caller.go"},
	"kinds are named in any case; where two differ by case, vedette.PreferExact or the cluster decides": {
		"server/kinds/kinds.go", "server/manifest/list.go", "server/manifest/custom_kinds.go", "server/manifest/api_group.go", "server/manifest/kind.go", "server/manifest/bind.go",
		"server/task/cluster.go", "server/clouddriver/applications/raw_resource_filter.go", "server/clouddriver/manifests/console.go", "server/clouddriver/manifests/job.go",
		"server/tables/workload.go", "server/api/history.go", "agent/watch/selection.go", "agent/watch/synthetic.go", "agent/watch/discovery_status.go",
	},
	"hosts, schemes, headers and encodings have no case": {
		"server/upstream/masking/masking.go", "server/upstream/loop.go", "server/middleware/host_guard.go", "server/clouddriver/applications/encoded_response.go",
		"server/config/listen.go", "server/config/check.go", "server/artifacts/git.go", "server/artifacts/github.go",
		"server/artifacts/restriction.go", "server/artifacts/helm.go", "server/artifacts/egress/redirect.go", "server/artifacts/egress/client.go",
		"agent/kube/measured_transport.go", "agent/cloud/exchange.go",
	},
	"names of providers, logins and environments, which kubelogin reads in any case": {"agent/cloud/cluster.go", "agent/cloud/exec.go"},
	"words of the configuration, which Spring reads in any case":                     {"server/config/discovery.go"},
	"a list with commas may have spaces after them":                                  {"server/api/parameters/parameters.go"},
	"names of properties and variables, which Spring, JDBC and shells read in any case": {
		"server/config/jdbc.go", "server/config/sql.go", "server/clouddriver/manifests/property.go",
	},
	"spaces around a document, or around a file with one value": {
		"server/api/account_admin.go", "server/api/operations/manifest.go", "server/clouddriver/credential_set.go",
		"agent/operate/manifest/manifest.go", "agent/operate/disclosure/patch.go", "agent/operate/request/status_error.go", "agent/kube/status.go",
		"server/discover/access.go", "agent/bearer/bearer.go", "agent/kube/credentials/end.go", "agent/config/auth.go", "agent/config/zone.go", "agent/config/logging.go",
	},
	"Git's and Helm's rules for their own files; no entry may be named .git in any case": {
		"server/artifacts/git_attributes.go", "server/artifacts/git_archive.go", "server/artifacts/git_ssh_session.go", "server/artifacts/helm_index.go",
	},
	"redaction hides names in any case": {"agent/redact/glob.go"},
	"texts for people, statements, and generated code": {
		"server/authorize/fiat.go", "server/store/sqldb/migration_files.go", "server/store/sqldb/mysql.go", "server/dispatch/history.go", "server/task/traffic.go",
		"server/task/end.go", "server/task/output.go", "agent/operate/request/retry.go", "wire/text.go", "wire/internal/argsproto/main.go", "agent/cloud/source.go",
	},
}

// TestNamesAreComparedAsBytes checks that no code is added that takes two names for one: by ignoring
// case or spaces, or by encoding/json, which ignores the case of members and takes the last of two.
func TestNamesAreComparedAsBytes(t *testing.T) {
	decoding := []string{"json.Unmarshal", "json.NewDecoder"}
	for _, dir := range []string{"agent", "internal/exactjson", "server", "wire"} {
		for _, file := range goFilesBelow(t, dir) {
			ignores := folds(t, file)
			reasons := reasonsFor(file)
			switch {
			case len(ignores) > 0 && len(reasons) == 0:
				t.Errorf("%s calls %s: names are equal if their bytes are; if it is not for names, add the file to foldingFiles with the reason", file, ignores[0])
			case len(ignores) == 0 && len(reasons) > 0:
				t.Errorf("%s is in foldingFiles, but ignores neither case nor spaces: remove it", file)
			case len(reasons) > 1:
				t.Errorf("%s is in foldingFiles with %d reasons, want one", file, len(reasons))
			}
		}
	}
	for reason, files := range foldingFiles {
		for _, file := range files {
			if _, err := os.Stat(file); err != nil {
				t.Errorf("foldingFiles, %s: %v", reason, err)
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

func reasonsFor(file string) (reasons []string) {
	for reason, files := range foldingFiles {
		if slices.Contains(files, file) {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// folds returns the functions that a file names and that make different names equal.
func folds(t *testing.T, file string) []string {
	t.Helper()
	folding := []string{"EqualFold", "ToLower", "ToUpper", "ToTitle", "TrimSpace", "Fields"}
	return slices.DeleteFunc(callsIn(t, file), func(call string) bool {
		pkg, function, _ := strings.Cut(call, ".")
		return pkg != "strings" && pkg != "bytes" || !slices.Contains(folding, function)
	})
}

func goFilesBelow(t *testing.T, root string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			files = append(files, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("got no files below %s, %v", root, err)
	}
	return files
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
