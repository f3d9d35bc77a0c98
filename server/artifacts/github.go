package artifacts

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/server/artifacts/egress"
	"github.com/vedette-io/vedette/server/manifest"
)

// GitHubAccount fetches files from GitHub, or from an installation of its own. References are
// URLs of the contents API.
type GitHubAccount struct {
	// Name of the account.
	Name string `config:"name"`
	BasicLogin
	TokenLogin
	// Get contents from the contents API itself. Needed for files of private repositories in some installations of GitHub Enterprise.
	UseContentAPI bool `config:"useContentAPI,alias=useContentApi" default:"false"`
	// Version of the contents API, for useContentAPI.
	APIVersion string `config:"githubAPIVersion,alias=githubApiVersion" default:"v3"`
	// The server does not ask for tokens of GitHub Apps. Set tokenFile to a file that another program renews.
	GitHubApp configfile.Ignored `config:"githubApp,ignored,warn"`
	// Rules for the hosts that references may name. Default: none besides artifacts.network.
	URLRestrictions *URLRestrictions `config:"urlRestrictions"`
}

func (a GitHubAccount) login() login { return newLogin(a.BasicLogin, a.TokenLogin) }

func (a GitHubAccount) fetcher(cfg Config, client *egress.Client) fetcher {
	a = configfile.WithDefaults(a)
	credentials, rules := a.login(), a.URLRestrictions.compile()
	header := func() (http.Header, error) {
		header, err := credentials.header("Authorization", "token ")
		if err == nil && a.UseContentAPI {
			header.Set("Accept", "application/vnd.github."+a.APIVersion+".raw")
		}
		return header, err
	}
	s := fileFetcher{Account: Account{a.Name, []string{"github/file"}, "artifacts-github"}, client: rules.client(cfg, client),
		restrictions: rules, header: header}
	s.locate = func(_ context.Context, artifact manifest.Artifact) (*url.URL, error) { return withRef(artifact) }
	if a.UseContentAPI {
		return s
	}
	return gitHubFetcher{s}
}

// gitHubFetcher asks the API where the content is.
type gitHubFetcher struct{ fileFetcher }

// contentMetadata is what the contents API says of a file. The API embeds files of up to 1 MB.
type contentMetadata struct {
	DownloadURL string `json:"download_url"`
}

const maxMetadataBytes = 4 << 20

func (s gitHubFetcher) fetch(ctx context.Context, r Request) (io.ReadCloser, error) {
	metadataURL, err := withRef(r.Artifact)
	if err != nil {
		return nil, err
	}
	downloadURL, err := s.downloadURL(ctx, metadataURL)
	if err != nil {
		return nil, err
	}
	// The URL contains a token of its own if the repository is private. The account's token stays
	// with the API.
	if strings.EqualFold(downloadURL.Host, metadataURL.Host) && downloadURL.Scheme == metadataURL.Scheme {
		return s.get(ctx, downloadURL, 0)
	}
	return s.client.Get(ctx, egress.Request{URL: downloadURL, Check: s.restrictions.Check})
}

func (s gitHubFetcher) downloadURL(ctx context.Context, metadataURL *url.URL) (*url.URL, error) {
	body, err := s.get(ctx, metadataURL, maxMetadataBytes)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var metadata contentMetadata
	if err := decodeAnswer(body, &metadata); err != nil {
		return nil, unexpectedAnswer(metadataURL, "something else than the metadata of a file: the reference must be a URL of the contents API, "+
			"like https://api.github.com/repos/ORG/REPO/contents/FILE")
	}
	u, err := url.Parse(metadata.DownloadURL)
	if err != nil || metadata.DownloadURL == "" {
		return nil, unexpectedAnswer(metadataURL, "without a download URL: check the credentials, and that the reference is a file")
	}
	return u, nil
}
