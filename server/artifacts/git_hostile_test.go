package artifacts_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/artifacts"
)

// TestGitSSHStalls checks a server that accepts connections and says nothing.
func TestGitSSHStalls(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	dir := t.TempDir()
	writeSSHKey(t, dir+"/key", "")
	accounts := artifacts.New(artifacts.Config{Policy: local, Limits: artifacts.Limits{TempDir: t.TempDir(), StallTimeout: 50 * time.Millisecond},
		Git: []artifacts.GitAccount{{Name: "git", SSHKeyPath: dir + "/key", TrustUnknownHosts: true}}})
	_, err = fetch(t, accounts, artifact("git/repo", "git", "", "ssh://git@"+listener.Addr().String()+"/repo.git"))
	expectError(t, "a silent server", err, "", "the server sent nothing more after 50ms")
}

// TestGitSSHEndlessReferences checks a server that lists branches for ever.
func TestGitSSHEndlessReferences(t *testing.T) {
	dir := t.TempDir()
	address := serveSSHCommand(t, writeSSHKey(t, dir+"/key", ""), func(out io.Writer) {
		long := strings.Repeat("b", 60_000)
		for i := 0; ; i++ {
			line := fmt.Sprintf("%040x refs/heads/%s%d\n", i+1, long, i)
			if i == 0 {
				line = fmt.Sprintf("%040x refs/heads/b0\x00\n", 1)
			}
			if _, err := fmt.Fprintf(out, "%04x%s", len(line)+4, line); err != nil {
				return
			}
		}
	})
	accounts := newAccounts(artifacts.Config{Limits: artifacts.Limits{TempDir: t.TempDir()}, Git: []artifacts.GitAccount{{Name: "git", SSHKeyPath: dir + "/key", TrustUnknownHosts: true}}})
	_, err := fetch(t, accounts, artifact("git/repo", "git", "", "ssh://git@"+address+"/repo.git"))
	expectError(t, "endless branches", err, "", "larger than the limit of 32 MiB")
}

// TestGitSSHSaysWhy checks that the words of the server are shown.
func TestGitSSHSaysWhy(t *testing.T) {
	dir := t.TempDir()
	r := newGitRepository(t)
	address, _ := r.serveSSH(t, writeSSHKey(t, dir+"/key", ""))
	accounts := newAccounts(artifacts.Config{Limits: artifacts.Limits{TempDir: t.TempDir()}, Git: []artifacts.GitAccount{{Name: "git", SSHKeyPath: dir + "/key", TrustUnknownHosts: true}}})
	_, err := fetch(t, accounts, artifact("git/repo", "git", "", "ssh://git@"+address+"/missing.git"))
	expectError(t, "no repository", err, "", "does not appear to be a git repository")
}

// TestGitRedirectToAnotherHost checks that redirects keep to the hosts of an account.
func TestGitRedirectToAnotherHost(t *testing.T) {
	target := newGitRepository(t).serveHTTP(t, "")
	elsewhere := strings.Replace(target, "127.0.0.1", "localhost", 1)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere+"/info/refs?"+r.URL.RawQuery, http.StatusFound)
	})
	accounts := newAccounts(artifacts.Config{Limits: artifacts.Limits{TempDir: t.TempDir()}, Git: []artifacts.GitAccount{
		{Name: "git"}, {Name: "hosts", AllowedHosts: []string{"127.0.0.1"}}}})
	mustFetch(t, accounts, artifact("git/repo", "git", "", server+"/repo.git"))
	_, err := fetch(t, accounts, artifact("git/repo", "hosts", "", server+"/repo.git"))
	expectError(t, "another host", err, vedette.Invalid, "redirect to host 'localhost'")
}

// pushTree makes a branch whose tree has the entries of a text in the form of "git ls-tree", which
// Git itself would not accept from a directory.
func (r gitRepository) pushTree(t *testing.T, branch string, raw []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tree")
	writeFile(t, path, string(raw))
	bare := filepath.Join(r.root, "repo.git")
	tree := git(t, bare, "hash-object", "-t", "tree", "-w", "--literally", path)
	git(t, bare, "update-ref", "refs/heads/"+branch, git(t, bare, "commit-tree", "-m", branch, tree))
}

// treeEntry is an entry of a tree as Git stores it.
func treeEntry(t *testing.T, mode, name, id string) []byte {
	t.Helper()
	hash, err := hex.DecodeString(id)
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(mode+" "+name+"\x00"), hash...)
}

// TestGitHostileNames checks names with which an archive would reach out of the directory into which
// it is unpacked, or that make directories nest without their paths growing.
func TestGitHostileNames(t *testing.T) {
	r := newGitRepository(t)
	server := r.serveHTTP(t, "")
	accounts := newAccounts(artifacts.Config{Git: []artifacts.GitAccount{{Name: "git"}}, Limits: artifacts.Limits{TempDir: t.TempDir()}})
	bare := filepath.Join(r.root, "repo.git")
	blob, directory := git(t, bare, "rev-parse", "master:README.md"), git(t, bare, "rev-parse", "master:k8s")
	for i, tt := range []struct{ mode, name, id string }{
		{"100644", "..", blob}, {"40000", "..", directory}, {"40000", ".", directory}, {"100644", "../x", blob},
		{"100644", "/etc/passwd", blob}, {"40000", ".git", directory}, {"40000", ".GIT", directory},
	} {
		branch := fmt.Sprintf("names%d", i)
		r.pushTree(t, branch, treeEntry(t, tt.mode, tt.name, tt.id))
		_, err := fetch(t, accounts, withVersion(artifact("git/repo", "git", "", server), branch))
		if err == nil || !strings.Contains(err.Error(), "which is not a valid name") {
			t.Errorf("%s %q: got %v, want an error about the name", tt.mode, tt.name, err)
		}
	}
}

// TestGitListsShareMemory checks servers that list very many branches and then stall, several at once. All lists
// together have the memory of artifacts.
func TestGitListsShareMemory(t *testing.T) {
	release := make(chan struct{})
	long := strings.Repeat("b", 60_000)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		fmt.Fprintf(w, "001e# service=git-upload-pack\n0000%04x%040x refs/heads/b0\x00\n", 60, 1)
		for i := 1; i < 350; i++ { // 20 MiB
			line := fmt.Sprintf("%040x refs/heads/%s%d\n", i+1, long, i)
			if _, err := fmt.Fprintf(w, "%04x%s", len(line)+4, line); err != nil {
				return
			}
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	accounts := artifacts.New(artifacts.Config{Policy: local, Limits: artifacts.Limits{TempDir: t.TempDir(), StallTimeout: time.Minute}, Git: []artifacts.GitAccount{{Name: "git"}}})
	var all sync.WaitGroup
	var refused atomic.Int64
	for range 8 {
		all.Go(func() {
			_, err := fetch(t, accounts, artifact("git/repo", "git", "", server+"/repo.git"))
			if err == nil || strings.Contains(err.Error(), "other artifacts use the memory") && refused.Add(1) == 4 {
				close(release)
			}
		})
	}
	all.Wait()
	if n := refused.Load(); n < 4 {
		t.Errorf("got %d of 8 lists of 20 MiB refused, want 4 at least", n)
	}
	_, err := fetch(t, accounts, artifact("git/repo", "git", "", server+"/repo.git"))
	if err == nil || strings.Contains(err.Error(), "other artifacts use the memory") {
		t.Errorf("after all lists have ended: got %v, want another error", err)
	}
}
