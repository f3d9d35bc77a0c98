package artifacts_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/artifacts"
	"github.com/vedette-io/vedette/server/artifacts/egress"
	"github.com/vedette-io/vedette/server/manifest"
)

// local allows the address on which httptest listens, and no other of this machine.
var local = egress.Policy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// newAccounts returns accounts that may fetch from servers of this test.
func newAccounts(cfg artifacts.Config) *artifacts.Accounts {
	cfg.Policy = local
	return artifacts.New(cfg)
}

func artifact(artifactType, account, name, reference string) manifest.Artifact {
	return manifest.Artifact{Type: artifactType, ArtifactAccount: account, Name: name, Reference: reference}
}

func withVersion(a manifest.Artifact, version string) manifest.Artifact {
	a.Version = &version
	return a
}

func fetch(t *testing.T, accounts *artifacts.Accounts, a manifest.Artifact) (string, error) {
	t.Helper()
	content, err := accounts.Fetch(t.Context(), artifacts.Request{Artifact: a})
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(content)
	return string(text), errors.Join(err, content.Close())
}

func mustFetch(t *testing.T, accounts *artifacts.Accounts, a manifest.Artifact) string {
	t.Helper()
	text, err := fetch(t, accounts, a)
	if err != nil {
		t.Fatalf("fetch %s %s: %v", a.Type, a.Reference, err)
	}
	return text
}

// expectError checks the kind and the text of an error. The kind "" means that it is a
// DownloadError.
func expectError(t *testing.T, what string, err error, kind vedette.ErrorKind, text string) {
	t.Helper()
	var download *artifacts.DownloadError
	if err == nil || vedette.KindOf(err) != kind || kind == "" && !errors.As(err, &download) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got %v (kind %q), want kind %q with %q", what, err, vedette.KindOf(err), kind, text)
	}
}

func TestUnknownAccountsAreMissing(t *testing.T) {
	accounts := newAccounts(artifacts.Config{GitHub: []artifacts.GitHubAccount{{Name: "gh"}}})
	var missing *artifacts.MissingError
	for _, a := range []manifest.Artifact{artifact("github/file", "other", "", ""), artifact("gitlab/file", "gh", "", ""), artifact("", "gh", "", "")} {
		if _, err := fetch(t, accounts, a); !errors.As(err, &missing) {
			t.Errorf("%+v: got %v, want a MissingError", a, err)
		}
	}
	_, err := fetch(t, accounts, artifact("github/file", "", "", ""))
	expectError(t, "no account", err, vedette.Invalid, "An artifact account must be supplied")
	_, err = accounts.Names(t.Context(), "gh", "github/file")
	expectError(t, "names of files", err, "", "Artifact names are not supported for artifact types that 'gh' account handles")
	_, err = accounts.Versions(t.Context(), "gh", "github/file", "x")
	expectError(t, "versions of files", err, "", "Artifact versions are not supported for artifact types that 'gh' account handles")
}

func TestDisabledArtifactsFetchNothing(t *testing.T) {
	accounts := artifacts.New(artifacts.Config{Disabled: true, HTTPEnabled: true})
	if list := accounts.List(); list == nil || len(list) != 0 {
		t.Errorf("got accounts %v, want an empty list", list)
	}
	_, err := fetch(t, accounts, artifact("embedded/base64", "embedded-artifact", "", "YQ=="))
	expectError(t, "disabled", err, "", "Artifacts have not been enabled")
	if _, err := accounts.Names(t.Context(), "a", "helm/chart"); err == nil {
		t.Error("names: got none, want an error")
	}
}

// TestDeniedAddressNamesTheSetting checks that the message says what an operator can do.
func TestDeniedAddressNamesTheSetting(t *testing.T) {
	server := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("got a request, want none") })
	accounts := artifacts.New(artifacts.Config{HTTPEnabled: true})
	for _, reference := range []string{server, strings.Replace(server, "127.0.0.1", "localhost", 1), "http://169.254.169.254/latest/meta-data/"} {
		_, err := fetch(t, accounts, artifact("http/file", "no-auth-http-account", "", reference))
		expectError(t, reference, err, vedette.Invalid, "artifacts.network.allowedAddresses")
	}
}
