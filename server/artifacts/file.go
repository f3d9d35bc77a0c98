package artifacts

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/requestid"
	"github.com/vedette-io/vedette/server/artifacts/egress"
	"github.com/vedette-io/vedette/server/manifest"
)

// fileSource fetches artifacts whose references are URLs.
type fileSource struct {
	Account
	client       *egress.Client
	restrictions *Restrictions
	header       func() (http.Header, error)
	// locate returns the URL of the content. Nil means that it is the reference.
	locate func(ctx context.Context, artifact manifest.Artifact) (*url.URL, error)
}

func (s fileSource) account() Account                 { return s.Account }
func (s fileSource) handles(artifactType string) bool { return slices.Contains(s.Types, artifactType) }

func (s fileSource) fetch(ctx context.Context, r Request) (io.ReadCloser, error) {
	locate := s.locate
	if locate == nil {
		locate = func(_ context.Context, artifact manifest.Artifact) (*url.URL, error) { return parseReference(artifact) }
	}
	u, err := locate(ctx, r.Artifact)
	if err != nil {
		return nil, err
	}
	return s.get(ctx, u, 0)
}

// get requests a URL with the account's credentials, and with the id of the caller's request.
func (s fileSource) get(ctx context.Context, u *url.URL, maxBytes int64) (io.ReadCloser, error) {
	header, err := s.header()
	if err != nil {
		return nil, err
	}
	requestid.SetHeader(ctx, header)
	return s.client.Get(ctx, egress.Request{URL: u, Header: header, Check: s.restrictions.Check, MaxBytes: maxBytes})
}

func parseReference(artifact manifest.Artifact) (*url.URL, error) {
	u, err := url.Parse(artifact.Reference)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, vedette.Errorf(vedette.Invalid, "Malformed URL (check artifact references): references of type %.100s must be URLs that start with http:// or https://",
			artifact.Type)
	}
	return u, nil
}

// defaultVersion is the branch that Clouddriver takes if an artifact has no version.
const defaultVersion = "master"

// withRef returns the reference with the artifact's version as the query parameter ref, which is
// how GitHub and GitLab name branches, tags and commits.
func withRef(artifact manifest.Artifact) (*url.URL, error) {
	u, err := parseReference(artifact)
	if err != nil {
		return nil, err
	}
	ref := "ref=" + url.QueryEscape(versionOf(artifact, defaultVersion))
	if u.RawQuery != "" {
		ref = u.RawQuery + "&" + ref
	}
	u.RawQuery = ref
	return u, nil
}

func versionOf(artifact manifest.Artifact, ifMissing string) string {
	if artifact.Version == nil || *artifact.Version == "" {
		return ifMissing
	}
	return *artifact.Version
}

// GitLabAccount fetches files from GitLab.
type GitLabAccount struct {
	Name         string
	Login        Login
	Restrictions *Restrictions
}

func (a GitLabAccount) source(client *egress.Client) source {
	return fileSource{
		Account: Account{a.Name, []string{"gitlab/file"}, "artifacts-gitlab"}, client: client, restrictions: a.Restrictions,
		header: func() (http.Header, error) { return a.Login.header("Private-Token", "") },
		locate: func(_ context.Context, artifact manifest.Artifact) (*url.URL, error) { return withRef(artifact) },
	}
}

// BitbucketAccount fetches files from Bitbucket.
type BitbucketAccount struct {
	Name         string
	Login        Login
	Restrictions *Restrictions
}

func (a BitbucketAccount) source(client *egress.Client) source {
	header := func() (http.Header, error) {
		header, err := a.Login.header("Authorization", "Bearer ")
		if err == nil && a.Login.Token != nil {
			header.Set("Accept", "application/json")
		}
		return header, err
	}
	return fileSource{Account: Account{a.Name, []string{"bitbucket/file"}, "artifacts-bitbucket"}, client: client,
		restrictions: a.Restrictions, header: header}
}

// HTTPAccount fetches files from any web server.
type HTTPAccount struct {
	Name         string
	Login        Login
	Restrictions *Restrictions
}

func (a HTTPAccount) source(client *egress.Client) source {
	a.Login.Token = nil // Clouddriver has no tokens here
	return fileSource{Account: Account{a.Name, []string{"http/file"}, "artifacts-http"}, client: client, restrictions: a.Restrictions,
		header: func() (http.Header, error) { return a.Login.header("Authorization", "") }}
}

// noAuthAccount is the account for URLs that need no credentials.
const noAuthAccount = "no-auth-http-account"

// withNoAuth returns the accounts of http. As in Clouddriver, one without credentials is among
// them, unless an account with credentials is configured.
func withNoAuth(cfg Config) []HTTPAccount {
	hasLogin := slices.ContainsFunc(cfg.HTTP, func(a HTTPAccount) bool { return !a.Login.IsEmpty() })
	if !cfg.HTTPEnabled || hasLogin {
		return cfg.HTTP
	}
	return append(slices.Clone(cfg.HTTP), HTTPAccount{Name: noAuthAccount})
}

// unexpectedAnswer is the error for a service that answers something else than its API says.
func unexpectedAnswer(u *url.URL, what string) error {
	return fmt.Errorf("%s answered %s", u.Host, what)
}
