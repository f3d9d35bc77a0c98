package artifacts_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/artifacts"
	"github.com/vedette-io/vedette/server/artifacts/egress"
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
	accounts := artifacts.New(artifacts.Config{TempDir: t.TempDir(), Policy: local, Limits: egress.Limits{StallTimeout: 50 * time.Millisecond},
		Git: []artifacts.GitAccount{{Name: "git", SSHKeyPath: dir + "/key", TrustUnknownHosts: true}}})
	_, err = fetch(t, accounts, artifact("git/repo", "git", "", "ssh://git@"+listener.Addr().String()+"/repo.git"))
	expectError(t, "a silent server", err, "", "the server sent nothing more after 50ms")
}

// TestGitSSHEndlessReferences checks a server that lists branches for ever.
func TestGitSSHEndlessReferences(t *testing.T) {
	dir := t.TempDir()
	address := serveSSHCommand(t, writeSSHKey(t, dir+"/key", ""), func(out io.Writer) {
		for i := 0; ; i++ {
			line := fmt.Sprintf("%040x refs/heads/b%d\n", i+1, i)
			if i == 0 {
				line = fmt.Sprintf("%040x refs/heads/b0\x00\n", 1)
			}
			if _, err := fmt.Fprintf(out, "%04x%s", len(line)+4, line); err != nil {
				return
			}
		}
	})
	accounts := newAccounts(artifacts.Config{TempDir: t.TempDir(), Git: []artifacts.GitAccount{{Name: "git", SSHKeyPath: dir + "/key", TrustUnknownHosts: true}}})
	_, err := fetch(t, accounts, artifact("git/repo", "git", "", "ssh://git@"+address+"/repo.git"))
	expectError(t, "endless branches", err, "", "larger than the limit of 32 MiB")
}

// TestGitSSHSaysWhy checks that the words of the server are shown.
func TestGitSSHSaysWhy(t *testing.T) {
	dir := t.TempDir()
	r := newGitRepository(t)
	address, _ := r.serveSSH(t, writeSSHKey(t, dir+"/key", ""))
	accounts := newAccounts(artifacts.Config{TempDir: t.TempDir(), Git: []artifacts.GitAccount{{Name: "git", SSHKeyPath: dir + "/key", TrustUnknownHosts: true}}})
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
	accounts := newAccounts(artifacts.Config{TempDir: t.TempDir(), Git: []artifacts.GitAccount{
		{Name: "git"}, {Name: "hosts", AllowedHosts: []string{"127.0.0.1"}}}})
	mustFetch(t, accounts, artifact("git/repo", "git", "", server+"/repo.git"))
	_, err := fetch(t, accounts, artifact("git/repo", "hosts", "", server+"/repo.git"))
	expectError(t, "another host", err, vedette.Invalid, "redirect to host 'localhost'")
}
