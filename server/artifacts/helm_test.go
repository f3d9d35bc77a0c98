package artifacts_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/server/artifacts"
)

// newRepository serves an index and charts. The index is as Helm writes it.
func newRepository(t *testing.T, index string) string {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "u" || password != "p" {
			http.Error(w, "no credentials", http.StatusUnauthorized)
			return
		}
		switch {
		case r.URL.Path == "/stable/index.yaml":
			fmt.Fprint(w, index)
		case strings.HasSuffix(r.URL.Path, ".tgz"):
			fmt.Fprint(w, r.URL.Path)
		default:
			http.NotFound(w, r)
		}
	})
}

func readTestdata(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func helmAccounts(repository string) *artifacts.Accounts {
	login := artifacts.BasicLogin{Username: "u", Password: configfile.NewSecret("p")}
	return newAccounts(artifacts.Config{Helm: []artifacts.HelmAccount{{Name: "charts", Repository: repository + "/stable", BasicLogin: login}}})
}

func TestChartsAreFetchedByVersion(t *testing.T) {
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "other %s", r.Header.Get("Authorization"))
	})
	for _, file := range []string{"index.yaml", "index.json"} {
		index := strings.ReplaceAll(readTestdata(t, file), "https://other.example.com", other)
		accounts := helmAccounts(newRepository(t, index))
		for _, tt := range []struct{ name, version, want string }{
			{"alpine", "0.1.0", "/stable/alpine-0.1.0.tgz"},
			{"alpine", "", "/stable/charts/alpine-0.10.0.tgz"},
			{"alpine", " ", "/stable/charts/alpine-0.10.0.tgz"},
			{"my.chart", "1.0.0+build", "other "},
			{"quoted", "2", "/elsewhere/quoted-2.tgz"},
		} {
			got := mustFetch(t, accounts, withVersion(artifact("helm/chart", "charts", tt.name, ""), tt.version))
			if got != tt.want {
				t.Errorf("%s: %s %s: got %q, want %q", file, tt.name, tt.version, got, tt.want)
			}
		}
		if got := mustFetch(t, accounts, artifact("helm/index", "charts", "", "")); got != index {
			t.Errorf("%s: helm/index: got %q, want the index", file, got)
		}
		names, err := accounts.Names(t.Context(), "charts", "helm/chart")
		slices.Sort(names)
		if want := []string{"alpine", "empty", "my.chart", "quoted"}; err != nil || !slices.Equal(names, want) {
			t.Errorf("%s: got names %q, %v, want %q", file, names, err, want)
		}
		versions, err := accounts.Versions(t.Context(), "charts", "helm/chart", "alpine")
		if want := []string{"0.1.0", "0.10.0", "0.9.0-rc.1", "nightly"}; err != nil || !slices.Equal(versions, want) {
			t.Errorf("%s: got versions %q, %v, want %q", file, versions, err, want)
		}
		_, err = fetch(t, accounts, artifact("helm/chart", "charts", "missing", ""))
		expectError(t, "an unknown chart", err, vedette.Invalid, "Could not find correct entry with artifact name missing")
		_, err = fetch(t, accounts, withVersion(artifact("helm/chart", "charts", "alpine", ""), "9"))
		expectError(t, "an unknown version", err, vedette.Invalid, "Could not find correct entry with artifact version 9")
		_, err = fetch(t, accounts, artifact("helm/chart", "charts", "", ""))
		expectError(t, "no name", err, vedette.Invalid, "should not be empty")
	}
}

func TestHelmRepositoryFails(t *testing.T) {
	for _, tt := range []struct{ name, index, want string }{
		{"something else", "<html>", "it has no entries"},
		{"nothing", "", "it has no entries"},
		{"entries in flow style", "entries: {a: [{version: 1}]}", "not written as an indented list"},
		{"invalid YAML", "entries:\n  a:\n  - version: [", "chart \"a\""},
		{"half an entry", "entries:\n  'a", "not valid at"},
		{"invalid JSON", `{"entries":{"a":[`, "unexpected EOF"},
		{"JSON without entries", `{"a":1}`, "it has no entries"},
		{"a list as JSON", `{"entries":[]}`, "not an object"},
		{"a huge line", "entries:\n  a: " + strings.Repeat("x", 9<<20), "a line is longer than 8 MiB"},
		{"a huge chart", "entries:\n  a:\n" + strings.Repeat("  - version: '1'\n", 1<<20), "more than 8 MiB"},
		{"a chart inside", "entries:\n  a:\n  - version: '1'\n    urls: ['http://169.254.169.254/']\n", "link-local"},
		{"a chart that is a file", "entries:\n  a:\n  - version: '1'\n    urls: ['file:///etc/passwd']\n", "URLs must start with http"},
		{"a chart without URLs", "entries:\n  a:\n  - version: '1'\n", "version 1"},
	} {
		_, err := fetch(t, helmAccounts(newRepository(t, tt.index)), artifact("helm/chart", "charts", "a", ""))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	accounts := newAccounts(artifacts.Config{Helm: []artifacts.HelmAccount{{Name: "charts", Repository: newRepository(t, "")}}})
	_, err := accounts.Names(t.Context(), "charts", "helm/chart")
	expectError(t, "no credentials", err, "", "answered with status 401")
	small := newAccounts(artifacts.Config{Limits: artifacts.Limits{MaxIndexBytes: 10}, Helm: []artifacts.HelmAccount{{Name: "charts",
		Repository: newRepository(t, "apiVersion: v1\n") + "/stable", BasicLogin: artifacts.BasicLogin{Username: "u", Password: configfile.NewSecret("p")}}}})
	_, err = small.Names(t.Context(), "charts", "helm/chart")
	expectError(t, "an index that is too large", err, "", "larger than the limit of 10 bytes")
}

// TestHelmChartWithManyURLs checks that an index cannot make the server try any number of servers.
func TestHelmChartWithManyURLs(t *testing.T) {
	var tried atomic.Int32
	dead := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		tried.Add(1)
		http.Error(w, "no chart", http.StatusNotFound)
	})
	version := "  - version: '1'\n    urls: ['" + dead + "/a', '" + dead + "/b']\n"
	index := "entries:\n  a:\n" + strings.Repeat(version, 100)
	_, err := fetch(t, helmAccounts(newRepository(t, index)), artifact("helm/chart", "charts", "a", ""))
	expectError(t, "no server has it", err, "", "status 404")
	if got := tried.Load(); got != 8 {
		t.Errorf("got %d requests, want 8", got)
	}
}
