package artifacts

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/vedette-io/vedette/server/artifacts/egress"
	"github.com/vedette-io/vedette/server/manifest"
)

// GitHubAccount fetches files from GitHub, or from an installation of its own. References are
// URLs of the contents API.
type GitHubAccount struct {
	Name         string
	Login        Login
	Restrictions *Restrictions
	// UseContentAPI asks the API for the content itself. Otherwise the API is asked for the URL
	// of the content.
	UseContentAPI bool
	APIVersion    string // "v3" if empty; used with UseContentAPI
}

func (a GitHubAccount) source(client *egress.Client) source {
	if a.APIVersion == "" {
		a.APIVersion = "v3"
	}
	header := func() (http.Header, error) {
		header, err := a.Login.header("Authorization", "token ")
		if err == nil && a.UseContentAPI {
			header.Set("Accept", "application/vnd.github."+a.APIVersion+".raw")
		}
		return header, err
	}
	s := fileSource{Account: Account{a.Name, []string{"github/file"}, "artifacts-github"}, client: client,
		restrictions: a.Restrictions, header: header}
	s.locate = func(_ context.Context, artifact manifest.Artifact) (*url.URL, error) { return withRef(artifact) }
	if a.UseContentAPI {
		return s
	}
	return gitHubSource{s}
}

// gitHubSource asks the API where the content is.
type gitHubSource struct{ fileSource }

// contentMetadata is what the contents API says of a file. The API embeds files of up to 1 MB.
type contentMetadata struct {
	DownloadURL string `json:"download_url"`
}

const maxMetadataBytes = 4 << 20

func (s gitHubSource) fetch(ctx context.Context, r Request) (io.ReadCloser, error) {
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

func (s gitHubSource) downloadURL(ctx context.Context, metadataURL *url.URL) (*url.URL, error) {
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
