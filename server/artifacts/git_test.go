package artifacts_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/server/artifacts"
)

// gitRepository is a repository that git itself serves.
type gitRepository struct {
	root  string // holds repo.git
	first string // ID of the first commit, which is no tip of a branch
	tip   string // ID of the last commit of master
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// newGitRepository makes a repository with everything that "git archive" treats in its own way.
func newGitRepository(t *testing.T) gitRepository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	root := t.TempDir()
	bare := filepath.Join(root, "repo.git")
	work := filepath.Join(root, "work")
	git(t, root, "init", "-q", "--bare", "-b", "master", bare)
	git(t, root, "init", "-q", "-b", "master", work)
	write := func(name, text string, mode os.FileMode) {
		path := filepath.Join(work, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	write("README.md", "first\n", 0o644)
	git(t, work, "add", "-A")
	git(t, work, "commit", "-qm", "first")
	r := gitRepository{root: root, first: git(t, work, "rev-parse", "HEAD")}
	write("k8s/base/web.yaml", "kind: Deployment\n", 0o644)
	write("k8s/base/run.sh", "#!/bin/sh\n", 0o755)
	write("k8s/large.bin", strings.Repeat("0123456789abcdef", 200_000), 0o644)
	write("k8s/internal/notes.txt", "not for archives\n", 0o644)
	write("k8s/.gitattributes", "internal export-ignore\n", 0o644)
	write("k8s-other/x.yaml", "x\n", 0o644)
	write("README.md", "second\n", 0o644)
	if err := os.Symlink("base/web.yaml", filepath.Join(work, "k8s/link.yaml")); err != nil {
		t.Fatal(err)
	}
	git(t, work, "add", "-A")
	git(t, work, "update-index", "--add", "--cacheinfo", "160000,"+r.first+",modules/sub")
	git(t, work, "commit", "-qm", "second")
	git(t, work, "tag", "-am", "annotated", "v1.0")
	git(t, work, "tag", "light")
	r.tip = git(t, work, "rev-parse", "HEAD")
	git(t, work, "checkout", "-qb", "feature/x", r.first)
	write("feature.txt", "feature\n", 0o644)
	git(t, work, "add", "feature.txt")
	git(t, work, "commit", "-qm", "feature")
	git(t, work, "push", "-q", "--all", bare)
	git(t, work, "push", "-q", "--tags", bare)
	return r
}

// serveHTTP serves the repository with git's own program. The user must be "u" with a password or
// "token" with a token, if they are not empty.
func (r gitRepository) serveHTTP(t *testing.T, secret string) string {
	t.Helper()
	handler := &cgi.Handler{Path: filepath.Join(git(t, r.root, "--exec-path"), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + r.root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1"}}
	return serve(t, func(w http.ResponseWriter, req *http.Request) {
		if user, password, _ := req.BasicAuth(); secret != "" && user+":"+password != secret {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "no access", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, req)
	}) + "/repo.git"
}

// entries lists an archive as "mode name size-or-target".
func entries(t *testing.T, archive string) string {
	t.Helper()
	compressed, err := gzip.NewReader(strings.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for reader := tar.NewReader(compressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeXGlobalHeader {
			fmt.Fprintf(&out, "commit %s\n", header.PAXRecords["comment"])
			continue
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%c %04o %s %s %d %s %d\n", header.Typeflag, header.Mode, header.Name, header.Linkname, len(content), header.Uname, header.ModTime.Unix())
	}
}

// TestArchivesEqualThoseOfGit compares archives with those of git itself.
func TestArchivesEqualThoseOfGit(t *testing.T) {
	r := newGitRepository(t)
	server := r.serveHTTP(t, "")
	accounts := newAccounts(artifacts.Config{Git: []artifacts.GitAccount{{Name: "git"}}, Limits: artifacts.Limits{TempDir: t.TempDir()}})
	for _, tt := range []struct{ name, version, subPath string }{
		{"no version", "", ""},
		{"a branch", "feature/x", ""},
		{"an annotated tag", "v1.0", ""},
		{"a tag", "light", "k8s"},
		{"a directory", "master", "k8s/base"},
		{"a file", "master", "k8s/base/web.yaml"},
		{"the ID of a tip", r.tip, "k8s"},
		{"the ID of another commit", r.first, ""},
		{"an abbreviated ID", r.first[:7], ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := withVersion(artifact("git/repo", "git", "", server), tt.version)
			a.Location = &tt.subPath
			version := tt.version
			if version == "" {
				version = "master"
			}
			args := []string{"-c", "tar.umask=0002", "archive", "--format=tgz", version}
			if tt.subPath != "" {
				args = append(args, tt.subPath)
			}
			cmd := exec.Command("git", args...)
			cmd.Dir = filepath.Join(r.root, "repo.git")
			reference, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			if got, want := entries(t, mustFetch(t, accounts, a)), entries(t, string(reference)); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func TestGitSubPathInMetadata(t *testing.T) {
	server := newGitRepository(t).serveHTTP(t, "")
	dir := t.TempDir()
	accounts := newAccounts(artifacts.Config{Git: []artifacts.GitAccount{{Name: "git"}}, Limits: artifacts.Limits{TempDir: dir}})
	a := artifact("git/repo", "git", "", server)
	a.Metadata = map[string]any{"subPath": "k8s-other"}
	if got := entries(t, mustFetch(t, accounts, a)); !strings.Contains(got, "k8s-other/x.yaml") || strings.Contains(got, "README") {
		t.Errorf("got:\n%s\nwant only k8s-other", got)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("got %v, %v in the directory for clones, want nothing", left, err)
	}
}

func TestEachGitLoginIsUsed(t *testing.T) {
	r := newGitRepository(t)
	file := t.TempDir() + "/login"
	writeFile(t, file, "u:p:q")
	for _, tt := range []struct {
		name, secret string
		account      artifacts.GitAccount
	}{
		{"user and password", "u:p", artifacts.GitAccount{Username: "u", Password: configfile.NewSecret("p")}},
		{"user and token", "u:t", artifacts.GitAccount{Username: "u", Token: configfile.NewSecret("t")}},
		{"token", "token:t", artifacts.GitAccount{Token: configfile.NewSecret("t")}},
		{"user and password in one file", "u:p:q", artifacts.GitAccount{UsernamePasswordFile: file}},
	} {
		tt.account.Name = "git"
		accounts := newAccounts(artifacts.Config{Git: []artifacts.GitAccount{tt.account, {Name: "anonymous"}}, Limits: artifacts.Limits{TempDir: t.TempDir()}})
		server := r.serveHTTP(t, tt.secret)
		if got := entries(t, mustFetch(t, accounts, artifact("git/repo", "git", "", server))); !strings.Contains(got, r.tip) {
			t.Errorf("%s: got:\n%s\nwant commit %s", tt.name, got, r.tip)
		}
		_, err := fetch(t, accounts, artifact("git/repo", "anonymous", "", server))
		expectError(t, tt.name+": without", err, "", "authentication required")
		_, err = fetch(t, accounts, artifact("git/repo", "git", "", "git@example.com:o/r.git"))
		expectError(t, tt.name+": SSH", err, vedette.Invalid, "must start with http:// or https://")
	}
}

func TestFailedClonesLeaveNothing(t *testing.T) {
	r := newGitRepository(t)
	server := r.serveHTTP(t, "")
	dir := t.TempDir()
	accounts := artifacts.New(artifacts.Config{Policy: local, Limits: artifacts.Limits{TempDir: dir, MaxBytes: 1 << 20}, Git: []artifacts.GitAccount{
		{Name: "git"}, {Name: "hosts", AllowedHosts: []string{"example.com"}}, {Name: "ssh", SSHKeyPath: dir + "/missing"}}})
	redirect := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://169.254.169.254/info/refs?service=git-upload-pack")
		w.WriteHeader(http.StatusFound)
	})
	garbage := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		fmt.Fprint(w, "001e# service=git-upload-pack\n0000ffffgarbage")
	})
	endless := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		fmt.Fprint(w, "001e# service=git-upload-pack\n0000")
		for i := 0; ; i++ {
			line := fmt.Sprintf("%040x refs/heads/b%d\x00\n", i+1, i)
			if i > 0 {
				line = strings.ReplaceAll(line, "\x00", "")
			}
			if _, err := fmt.Fprintf(w, "%04x%s", len(line)+4, line); err != nil {
				return
			}
		}
	})
	for _, tt := range []struct {
		name, account, reference, version string
		kind                              vedette.ErrorKind
		want                              string
	}{
		{"no branch", "git", server, "missing", "", `there is no branch or tag "missing"`},
		{"no commit", "git", server, "0123456", "", "0 commits have an ID"},
		{"no complete commit", "git", server, strings.Repeat("0123", 10), "", "0 commits have an ID"},
		{"no repository", "git", server + "x", "", "", "not found"},
		{"no server", "git", "http://127.0.0.1:1/x", "", "", "connection refused"},
		{"a denied address", "git", "http://169.254.169.254/x", "", vedette.Invalid, "allowedAddresses"},
		{"a denied address over SSH", "git", "ssh://git@127.0.0.2/x", "", vedette.Invalid, "allowedAddresses"},
		{"a redirect to a denied address", "git", redirect, "", vedette.Invalid, "link-local"},
		{"garbage", "git", garbage, "", "", "clone from 127.0.0.1"},
		{"endless branches", "git", endless, "", "", "larger than the limit of 1 MiB"},
		{"a file", "git", "file://" + r.root + "/repo.git", "", vedette.Invalid, "must be the URL of a Git repository"},
		{"a path", "git", r.root + "/repo.git", "", vedette.Invalid, "must be the URL of a Git repository"},
		{"the protocol of git", "git", "git://127.0.0.1/x", "", vedette.Invalid, "must be the URL of a Git repository"},
		{"nothing", "git", "", "", vedette.Invalid, "must be the URL of a Git repository"},
		{"an option", "git", server, "--upload-pack=x", vedette.Invalid, "letters, digits"},
		{"another host", "hosts", server, "", vedette.Invalid, "not in the allowed hosts list"},
		{"a host that ends alike", "hosts", "https://evilexample.com/x", "", vedette.Invalid, "not in the allowed hosts list"},
		{"HTTP with a key", "ssh", server, "", vedette.Invalid, "must start with ssh:// or git@"},
		{"no key", "ssh", "git@127.0.0.1:x", "", "", "no such file"},
	} {
		_, err := fetch(t, accounts, withVersion(artifact("git/repo", tt.account, "", tt.reference), tt.version))
		expectError(t, tt.name, err, tt.kind, tt.want)
	}
	small := artifacts.New(artifacts.Config{Policy: local, Limits: artifacts.Limits{TempDir: dir, MaxBytes: 1 << 10}, Git: []artifacts.GitAccount{{Name: "git"}}})
	_, err := fetch(t, small, artifact("git/repo", "git", "", server))
	expectError(t, "a large repository", err, "", "larger than the limit of 1024 bytes")
	expanding := artifacts.New(artifacts.Config{Policy: local, Limits: artifacts.Limits{TempDir: dir, MaxBytes: 100 << 10}, Git: []artifacts.GitAccount{{Name: "git"}}})
	_, err = fetch(t, expanding, artifact("git/repo", "git", "", server))
	expectError(t, "a repository that expands", err, "", "larger than the limit of 819200 bytes")
	largeFile := artifacts.New(artifacts.Config{Policy: local, Limits: artifacts.Limits{TempDir: dir, MaxGitObjectBytes: 1 << 20}, Git: []artifacts.GitAccount{{Name: "git"}}})
	_, err = fetch(t, largeFile, artifact("git/repo", "git", "", server))
	expectError(t, "a large file", err, "", "has a file of 3125 KiB, and the limit artifacts.limits.maxGitObjectBytes is 1 MiB")
	// A file that is nearly the same as another one is sent as a difference.
	similar := newAccounts(artifacts.Config{Limits: artifacts.Limits{TempDir: dir, MaxGitObjectBytes: 5 << 20}, Git: []artifacts.GitAccount{{Name: "git"}}})
	git(t, r.root+"/work", "checkout", "-qb", "similar", "master")
	text, err := os.ReadFile(r.root + "/work/k8s/large.bin")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, r.root+"/work/k8s/larger.bin", string(text)+"more")
	git(t, r.root+"/work", "add", "k8s/larger.bin")
	git(t, r.root+"/work", "commit", "-qm", "similar")
	git(t, r.root+"/work", "push", "-q", r.root+"/repo.git", "similar")
	git(t, r.root+"/repo.git", "repack", "-qadf")
	_, err = fetch(t, similar, withVersion(artifact("git/repo", "git", "", server), "similar"))
	expectError(t, "a large difference", err, "", "stored as a difference to another one")
	missing := artifact("git/repo", "git", "", server)
	path := "k8s/missing"
	missing.Location = &path
	_, err = fetch(t, accounts, missing)
	expectError(t, "a path that does not exist", err, vedette.NotFound, `"k8s/missing" does not exist`)
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("got %v, %v in the directory for clones, want nothing", left, err)
	}
}

// TestStalledClonesEnd checks servers that stop in the middle of each answer.
func TestStalledClonesEnd(t *testing.T) {
	r := newGitRepository(t)
	response, err := http.Get(r.serveHTTP(t, "") + "/info/refs?service=git-upload-pack")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	refs, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for stalling, start := range map[string]string{"/repo.git/info/refs": string(refs[:50]), "/repo.git/git-upload-pack": "0008NAK\n"} {
		proxy := serve(t, func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
			if req.URL.Path != stalling {
				_, _ = w.Write(refs)
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			fmt.Fprint(w, start)
			_ = http.NewResponseController(w).Flush()
			<-req.Context().Done()
		})
		dir := t.TempDir()
		stall := 100 * time.Millisecond
		fetchStalling := func() error {
			accounts := artifacts.New(artifacts.Config{Policy: local, Limits: artifacts.Limits{TempDir: dir, StallTimeout: stall},
				Git: []artifacts.GitAccount{{Name: "git"}}})
			_, err := fetch(t, accounts, artifact("git/repo", "git", "", proxy+"/repo.git"))
			return err
		}
		err := fetchStalling()
		for err != nil && strings.Contains(err.Error(), "timeout awaiting response headers") && stall < time.Minute {
			stall *= 4 // a busy machine may take that long for the header
			err = fetchStalling()
		}
		expectError(t, stalling, err, "", fmt.Sprintf("the server sent nothing more after %v", stall))
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%s: got %v, %v in the directory for clones, want nothing", stalling, err, left)
		}
	}
}
