package artifacts_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/requestid"
	"github.com/vedette-io/vedette/server/artifacts"
	"github.com/vedette-io/vedette/server/manifest"
)

// TestFilesAreFetchedFromGitHub serves the contents API and, on another host, the content.
func TestFilesAreFetchedFromGitHub(t *testing.T) {
	raw := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("token") != "temporary" || r.Header.Get("Authorization") != "" {
			http.Error(w, "unexpected credentials", http.StatusForbidden)
			return
		}
		fmt.Fprint(w, "kind: Deployment\n")
	})
	api := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "token t0ken":
			http.Error(w, "{}", http.StatusNotFound) // GitHub hides private repositories
		case r.URL.Path != "/repos/o/r/contents/web.yaml":
			fmt.Fprint(w, `[{"name":"web.yaml"}]`) // a directory
		case r.URL.Query().Get("ref") == "empty":
			fmt.Fprint(w, `{"download_url":null}`)
		case r.Header.Get("Accept") == "application/vnd.github.v3.raw":
			fmt.Fprintf(w, "raw %s", r.URL.RawQuery)
		default:
			fmt.Fprintf(w, `{"download_url":%q}`, raw+"/o/r/"+r.URL.Query().Get("ref")+"/web.yaml?token=temporary")
		}
	})
	token := artifacts.TokenLogin{Token: configfile.NewSecret("t0ken")}
	accounts := newAccounts(artifacts.Config{GitHub: []artifacts.GitHubAccount{
		{Name: "gh", TokenLogin: token}, {Name: "content", TokenLogin: token, UseContentAPI: true}, {Name: "anonymous"}}})
	file := api + "/repos/o/r/contents/web.yaml"
	if got, want := mustFetch(t, accounts, artifact("github/file", "gh", "web.yaml", file)), "kind: Deployment\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := mustFetch(t, accounts, artifact("github/file", "content", "", file)), "raw ref=master"; got != want {
		t.Errorf("contents API: got %q, want %q", got, want)
	}
	feature := withVersion(artifact("github/file", "content", "", file+"?x=1"), "feature/a&b")
	if got, want := mustFetch(t, accounts, feature), "raw x=1&ref=feature%2Fa%26b"; got != want {
		t.Errorf("a branch: got %q, want %q", got, want)
	}
	_, err := fetch(t, accounts, artifact("github/file", "anonymous", "web.yaml", file))
	expectError(t, "no credentials", err, "", "answered with status 404: what the URL names does not exist there, or the credentials")
	_, err = fetch(t, accounts, artifact("github/file", "gh", "", api+"/repos/o/r/contents/directory"))
	expectError(t, "a directory", err, "", "must be a URL of the contents API")
	_, err = fetch(t, accounts, withVersion(artifact("github/file", "gh", "", file), "empty"))
	expectError(t, "no download URL", err, "", "without a download URL")
}

// TestGitHubPointsInside checks that a server cannot send Vedette to an address that is denied.
func TestGitHubPointsInside(t *testing.T) {
	api := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"download_url":"http://169.254.169.254/"}`)
	})
	accounts := newAccounts(artifacts.Config{GitHub: []artifacts.GitHubAccount{{Name: "gh"}}})
	_, err := fetch(t, accounts, artifact("github/file", "gh", "", api))
	expectError(t, "metadata", err, vedette.Invalid, "link-local")
}

func TestFilesAreFetchedFromGitLab(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.RequestURI, r.Header.Get("Private-Token"))
	})
	path := filepath.Join(t.TempDir(), "token")
	writeFile(t, path, "first\n")
	accounts := newAccounts(artifacts.Config{GitLab: []artifacts.GitLabAccount{{Name: "gl", TokenFile: "file:" + path}}})
	a := withVersion(artifact("gitlab/file", "gl", "", server+"/api/v4/projects/1/repository/files/k8s%2Fweb.yaml/raw"), "v1.0")
	const uri = "/api/v4/projects/1/repository/files/k8s%2Fweb.yaml/raw?ref=v1.0 "
	if got := mustFetch(t, accounts, a); got != uri+"first" {
		t.Errorf("got %q, want the escaped path, the version and the token", got)
	}
	writeFile(t, path, "second\n")
	if got := mustFetch(t, accounts, a); got != uri+"second" {
		t.Errorf("got %q, want the rotated token", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err := fetch(t, accounts, a)
	expectError(t, "no file", err, "", "read the file "+path+" of the account: no such file or directory")
}

func TestBitbucketAndHTTP(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s|%s", r.Header.Get("Authorization"), r.Header.Get("Accept"))
	})
	path := filepath.Join(t.TempDir(), "login")
	writeFile(t, path, "file:pass\n")
	accounts := newAccounts(artifacts.Config{
		Bitbucket: []artifacts.BitbucketAccount{{Name: "token", TokenLogin: artifacts.TokenLogin{Token: configfile.NewSecret("t")}},
			{Name: "basic", BasicLogin: artifacts.BasicLogin{Username: "u", Password: configfile.NewSecret("p")}}},
		HTTP: []artifacts.HTTPAccount{{Name: "file", BasicLogin: artifacts.BasicLogin{UsernamePasswordFile: path}}},
	})
	basic := func(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }
	for _, tt := range []struct{ artifactType, account, want string }{
		{"bitbucket/file", "token", "Bearer t|application/json"},
		{"bitbucket/file", "basic", basic("u:p") + "|"},
		{"http/file", "file", basic("file:pass") + "|"},
	} {
		if got := mustFetch(t, accounts, artifact(tt.artifactType, tt.account, "", server)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.account, got, tt.want)
		}
	}
	for _, reference := range []string{"", "web.yaml", "file:///etc/passwd", "http://", "http://[::1", "://x", "http://a b/"} {
		_, err := fetch(t, accounts, artifact("http/file", "file", "", reference))
		expectError(t, reference, err, vedette.Invalid, "Malformed URL")
	}
}

// TestNoAuthAccount checks that it exists unless another account has credentials, like in
// Clouddriver.
func TestNoAuthAccount(t *testing.T) {
	login := artifacts.BasicLogin{Username: "u", Password: configfile.NewSecret("p")}
	for _, tt := range []struct {
		name string
		cfg  artifacts.Config
		want string
	}{
		{"not enabled", artifacts.Config{}, ""},
		{"no accounts", artifacts.Config{HTTPEnabled: true}, "no-auth-http-account"},
		{"accounts without credentials", artifacts.Config{HTTPEnabled: true, HTTP: []artifacts.HTTPAccount{{Name: "a"}}}, "a no-auth-http-account"},
		{"accounts with credentials", artifacts.Config{HTTPEnabled: true, HTTP: []artifacts.HTTPAccount{{Name: "a", BasicLogin: login}}}, "a"},
	} {
		var names []string
		for _, account := range artifacts.New(tt.cfg).List() {
			if account.Type == "artifacts-http" {
				names = append(names, account.Name)
			}
		}
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestErrorsHideTokens checks that URLs with tokens do not reach users.
func TestErrorsHideTokens(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) })
	accounts := newAccounts(artifacts.Config{HTTPEnabled: true})
	for _, reference := range []string{server + "/x?token=s3cret", "http://user:s3cret@127.0.0.1:1/", "http://127.0.0.1:1/?token=s3cret"} {
		if _, err := fetch(t, accounts, artifact("http/file", "no-auth-http-account", "", reference)); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("got %v, want an error without the token", err)
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRequestIDs checks that web servers and repositories get the id of the request for which they are
// asked.
func TestRequestIDs(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get(requestid.Header)) })
	accounts := newAccounts(artifacts.Config{HTTPEnabled: true, HTTP: []artifacts.HTTPAccount{{Name: "web"}},
		Helm: []artifacts.HelmAccount{{Name: "charts", Repository: server}}})
	for _, a := range []manifest.Artifact{artifact("http/file", "web", "", server+"/f"), artifact("helm/index", "charts", "", "")} {
		content, err := accounts.Fetch(requestid.With(t.Context(), "r-1"), artifacts.Request{Artifact: a})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(content)
		if err = errors.Join(err, content.Close()); err != nil || string(got) != "r-1" {
			t.Errorf("%s: the server got the id %q, %v", a.Type, got, err)
		}
		if got := mustFetch(t, accounts, a); got != "" {
			t.Errorf("%s without an id: the server got %q", a.Type, got)
		}
	}
}
