package artifacts

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/requestid"
	"github.com/vedette-io/vedette/server/artifacts/egress"
	"github.com/vedette-io/vedette/server/manifest"
)

// fileFetcher fetches artifacts whose references are URLs.
type fileFetcher struct {
	Account
	client       *egress.Client
	restrictions *restrictions
	header       func() (http.Header, error)
	// locate returns the URL of the content. Nil means that it is the reference.
	locate func(ctx context.Context, artifact manifest.Artifact) (*url.URL, error)
}

func (s fileFetcher) account() Account                 { return s.Account }
func (s fileFetcher) handles(artifactType string) bool { return slices.Contains(s.Types, artifactType) }

func (s fileFetcher) fetch(ctx context.Context, r Request) (io.ReadCloser, error) {
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
func (s fileFetcher) get(ctx context.Context, u *url.URL, maxBytes int64) (io.ReadCloser, error) {
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

// GitLabAccount is an account of GitLab.
type GitLabAccount struct {
	// Name of the account.
	Name string `config:"name"`
	// Access token.
	Token configfile.Secret `config:"token"`
	// File with an access token. It is used instead of token.
	TokenFile string `config:"tokenFile"`
	// Rules for the hosts that references may name. Default: none besides artifacts.network.
	URLRestrictions *URLRestrictions `config:"urlRestrictions"`
}

func (a GitLabAccount) login() login { return newLogin(BasicLogin{}, TokenLogin{a.Token, a.TokenFile}) }

func (a GitLabAccount) fetcher(cfg Config, client *egress.Client) fetcher {
	credentials, rules := a.login(), a.URLRestrictions.compile()
	return fileFetcher{
		Account: Account{a.Name, []string{"gitlab/file"}, "artifacts-gitlab"}, client: rules.client(cfg, client), restrictions: rules,
		header: func() (http.Header, error) { return credentials.header("Private-Token", "") },
		locate: func(_ context.Context, artifact manifest.Artifact) (*url.URL, error) { return withRef(artifact) },
	}
}

// BitbucketAccount is an account of Bitbucket Cloud or Server.
type BitbucketAccount struct {
	// Name of the account.
	Name string `config:"name"`
	BasicLogin
	TokenLogin
	// Rules for the hosts that references may name. Default: none besides artifacts.network.
	URLRestrictions *URLRestrictions `config:"urlRestrictions"`
}

func (a BitbucketAccount) login() login { return newLogin(a.BasicLogin, a.TokenLogin) }

func (a BitbucketAccount) fetcher(cfg Config, client *egress.Client) fetcher {
	credentials, rules := a.login(), a.URLRestrictions.compile()
	header := func() (http.Header, error) {
		header, err := credentials.header("Authorization", "Bearer ")
		if err == nil && credentials.token != nil {
			header.Set("Accept", "application/json")
		}
		return header, err
	}
	return fileFetcher{Account: Account{a.Name, []string{"bitbucket/file"}, "artifacts-bitbucket"}, client: rules.client(cfg, client),
		restrictions: rules, header: header}
}

// HTTPAccount is an account of a web server. Clouddriver has no tokens for it.
type HTTPAccount struct {
	// Name of the account.
	Name string `config:"name"`
	BasicLogin
	// Rules for the hosts that references may name. Default: none besides artifacts.network.
	URLRestrictions *URLRestrictions `config:"urlRestrictions"`
}

func (a HTTPAccount) login() login { return newLogin(a.BasicLogin, TokenLogin{}) }

func (a HTTPAccount) fetcher(cfg Config, client *egress.Client) fetcher {
	credentials, rules := a.login(), a.URLRestrictions.compile()
	return fileFetcher{Account: Account{a.Name, []string{"http/file"}, "artifacts-http"}, client: rules.client(cfg, client),
		restrictions: rules, header: func() (http.Header, error) { return credentials.header("Authorization", "") }}
}

// noAuthAccount is the account for URLs that need no credentials.
const noAuthAccount = "no-auth-http-account"

// withNoAuth returns the accounts of http. As in Clouddriver, one without credentials is among
// them, unless an account with credentials is configured.
func withNoAuth(cfg Config) []HTTPAccount {
	hasLogin := slices.ContainsFunc(cfg.HTTP, func(a HTTPAccount) bool { return !a.login().isEmpty() })
	if !cfg.HTTPEnabled || hasLogin {
		return cfg.HTTP
	}
	return append(slices.Clone(cfg.HTTP), HTTPAccount{Name: noAuthAccount})
}

// unexpectedAnswer is the error for a service that answers something else than its API says.
func unexpectedAnswer(u *url.URL, what string) error {
	return fmt.Errorf("%s answered %s", u.Host, what)
}
