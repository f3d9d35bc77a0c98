package artifacts_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/artifacts"
)

// makeTree makes a tree of lines as "git ls-tree" prints them, and returns its ID.
func (r gitRepository) makeTree(t *testing.T, lines ...string) string {
	t.Helper()
	return r.pipe(t, strings.Join(lines, "\n")+"\n", "mktree", "--missing")
}

func (r gitRepository) makeBlob(t *testing.T, text string) string {
	t.Helper()
	return r.pipe(t, text, "hash-object", "-w", "--stdin")
}

func (r gitRepository) pipe(t *testing.T, input string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = filepath.Join(r.root, "repo.git"), strings.NewReader(input)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

func (r gitRepository) setBranch(t *testing.T, branch, tree string) {
	t.Helper()
	bare := filepath.Join(r.root, "repo.git")
	git(t, bare, "update-ref", "refs/heads/"+branch, git(t, bare, "commit-tree", "-m", branch, tree))
}

// nested makes a branch of nested directories that all have the same .gitattributes.
func (r gitRepository) nested(t *testing.T, branch string, depth int, attributes string) {
	t.Helper()
	blob := r.makeBlob(t, attributes)
	tree := r.makeTree(t, "100644 blob "+blob+"\t.gitattributes")
	for range depth {
		tree = r.makeTree(t, "100644 blob "+blob+"\t.gitattributes", "040000 tree "+tree+"\td")
	}
	r.setBranch(t, branch, tree)
}

// allocated returns how many bytes a function allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestGitAttributesOfManyDirectories checks that the attributes of a repository of a few kilobytes do not multiply
// along its directories.
func TestGitAttributesOfManyDirectories(t *testing.T) {
	r := newGitRepository(t)
	server := r.serveHTTP(t, "")
	accounts := newAccounts(artifacts.Config{Git: []artifacts.GitAccount{{Name: "git"}}, Limits: artifacts.Limits{TempDir: t.TempDir()}})
	for _, tt := range []struct {
		name, line string
		lines      int
		want       string
	}{
		{"others", "a b\n", 262_143, ""},
		{"rules", "a export-ignore\n", 60_000, "more than 1024 KiB of lines with export-ignore"},
		{"macros", "[attr]m b\n", 60_000, "more than 64 KiB of macros"},
		{"bytes", "# only a comment\n", 262_143, "larger than 1 MiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r.nested(t, tt.name, 40, strings.Repeat(tt.line, tt.lines))
			var err error
			var archive string
			bytes := allocated(func() {
				archive, err = fetch(t, accounts, withVersion(artifact("git/repo", "git", "", server), tt.name))
			})
			switch {
			case tt.want == "" && err == nil:
				if got := strings.Count(entries(t, archive), ".gitattributes"); got != 41 {
					t.Errorf("got %d files, want 41", got)
				}
			case tt.want == "" || err == nil || !strings.Contains(err.Error(), tt.want):
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
			if bytes > 256<<20 {
				t.Errorf("%d MiB were allocated for a repository of a few kilobytes", bytes>>20)
			}
		})
	}
}

// TestGitSharedAttributes checks that a file with many rules counts once, and has an effect in each directory.
func TestGitSharedAttributes(t *testing.T) {
	r := newGitRepository(t)
	server := r.serveHTTP(t, "")
	accounts := newAccounts(artifacts.Config{Git: []artifacts.GitAccount{{Name: "git"}}, Limits: artifacts.Limits{TempDir: t.TempDir()}})
	var lines strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&lines, "f%d export-ignore\n", i)
	}
	r.nested(t, "shared", 40, lines.String()+".gitattributes export-ignore\n")
	got := entries(t, mustFetch(t, accounts, withVersion(artifact("git/repo", "git", "", server), "shared")))
	if strings.Contains(got, ".gitattributes") || strings.Count(got, "\n5 ") != 40 {
		t.Errorf("got:\n%s\nwant 40 directories and no file", got)
	}
}

// TestGitExportIgnore compares archives with those of git for all forms of patterns and lines.
func TestGitExportIgnore(t *testing.T) {
	r := newGitRepository(t)
	server := r.serveHTTP(t, "")
	accounts := newAccounts(artifacts.Config{Git: []artifacts.GitAccount{{Name: "git"}}, Limits: artifacts.Limits{TempDir: t.TempDir()}})
	blob := r.makeBlob(t, "x\n")
	for i, tt := range []struct{ root, below string }{
		{"docs export-ignore", ""},
		{"docs/ export-ignore", ""},
		{"/docs/ export-ignore\nx.md/ export-ignore", ""},
		{"docs/* export-ignore", ""},
		{"*.md export-ignore", ""},
		{"*.md export-ignore\n* text=auto", ""},
		{"*.md export-ignore\nx.md -export-ignore", ""},
		{"*.md export-ignore\nx.md !export-ignore", ""},
		{"*.md export-ignore=yes\n*.sh export-ignore=true", ""},
		{"*.md export-ignore", "x.md -export-ignore"},
		{"*.md -export-ignore", "x.md export-ignore"},
		{"docs/x.md export-ignore", ""},
		{"x.md export-ignore", "/y.md export-ignore\n/deep/x.md export-ignore"},
		{"**/x.md export-ignore", ""},
		{"docs/**/x.md export-ignore", ""},
		{"docs/** export-ignore", ""},
		{"**/deep/** export-ignore", ""},
		{"**/deep/**/z/*.md export-ignore", ""},
		{"d**s export-ignore", ""},
		{"[!xy].md export-ignore\n\\[*.md export-ignore", ""},
		{"[x-y].md export-ignore", ""},
		{"?.md export-ignore", ""},
		{"!x.md export-ignore\n#x.md export-ignore", ""},
		{`"x y.md" export-ignore` + "\n" + `"\170.md" export-ignore`, ""},
		{`"x.md export-ignore`, ""},
		{"[attr]hidden export-ignore\n*.md hidden", ""},
		{"[attr]hidden export-ignore\n*.md hidden\nx.md -hidden", ""},
		{"*.md outer\n[attr]outer inner\n[attr]inner export-ignore", "y.md !outer"},
		{"[attr]a b\n[attr]b a export-ignore\n*.md a", ""},
		{"[attr]hidden export-ignore\n*.md -export-ignore hidden\n*.sh hidden -export-ignore", ""},
		{"[attr]x.y export-ignore\n*.md x.y", "[attr]never export-ignore\n*.sh never"},
		{"*.md a b c=d -e !f export-ignore g", ""},
		{"*.md bad^name export-ignore\n*.sh export-ignore", ""},
		{"*.md" + strings.Repeat(" a", 1100) + " export-ignore\n*.sh export-ignore", ""},
		{"*.md export-ignore\r\n*.sh export-ignore\r\n", ""},
		{" \t*.md\texport-ignore", ""},
		{"/ export-ignore\n* -export-ignore", ""},
		{"modules export-ignore", ""},
		{"link export-ignore\nlink/ -export-ignore", ""},
	} {
		file := func(name string) string { return "100644 blob " + blob + "\t" + name }
		attributes := func(text string) string { return "100644 blob " + r.makeBlob(t, text) + "\t.gitattributes" }
		z := r.makeTree(t, file("x.md"), file("y.md"))
		deep := r.makeTree(t, file("x.md"), file("run.sh"), "040000 tree "+z+"\tz")
		docs := r.makeTree(t, attributes(tt.below), file("x.md"), file("y.md"), file("z.txt"), file("run.sh"), "040000 tree "+deep+"\tdeep")
		root := r.makeTree(t, attributes(tt.root), file("x.md"), file("y.md"), file("x y.md"), file("[z.md"), file("run.sh"), "040000 tree "+docs+"\tdocs",
			"040000 tree "+deep+"\tdeep", "120000 blob "+blob+"\tlink", "160000 commit "+r.first+"\tmodules")
		branch := fmt.Sprintf("ignore%d", i)
		r.setBranch(t, branch, root)
		cmd := exec.Command("git", "-c", "tar.umask=0002", "archive", "--format=tgz", branch)
		cmd.Dir = filepath.Join(r.root, "repo.git")
		reference, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		got, want := entries(t, mustFetch(t, accounts, withVersion(artifact("git/repo", "git", "", server), branch))), entries(t, string(reference))
		if got != want {
			t.Errorf("%.100q, below %q: got:\n%s\nwant:\n%s", tt.root, tt.below, got, want)
		}
	}
}
