package artifacts

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/bucket"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/internal/notfound"
	"github.com/vedette-io/vedette/internal/textcheck"
	"github.com/vedette-io/vedette/server/artifacts/egress"
)

// front50Fetcher fetches templates of pipelines from Front50. Its client has no policy for
// addresses, because the operator named the address.
type front50Fetcher struct {
	base   *url.URL
	client *egress.Client
}

const front50Type = "front50/pipelineTemplate"

func (front50Fetcher) account() Account {
	return Account{"front50ArtifactCredentials", []string{front50Type}, "artifacts-front50"}
}
func (front50Fetcher) handles(artifactType string) bool { return artifactType == front50Type }

func (s front50Fetcher) fetch(ctx context.Context, r Request) (io.ReadCloser, error) {
	const scheme = "spinnaker://"
	id, ok := strings.CutPrefix(r.Artifact.Reference, scheme)
	if !ok || id == "" {
		return nil, vedette.Errorf(vedette.Invalid, "'%s' artifacts must be specified with a 'reference' starting with %s", front50Type, scheme)
	}
	query := url.Values{}
	if name, digest, ok := strings.Cut(id, "@sha256:"); ok {
		id = name
		query.Set("digest", digest)
	} else if name, tag, ok := strings.Cut(id, ":"); ok {
		id = name
		query.Set("tag", tag)
	}
	if !textcheck.IsPathSegment(id) {
		return nil, vedette.Errorf(vedette.Invalid, "%q is not the id of a pipeline template", id)
	}
	return s.get(ctx, "/v2/pipelineTemplates/"+url.PathEscape(id), query)
}

func (s front50Fetcher) get(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	u, err := bucket.WithEscapedPath(s.base, strings.TrimSuffix(s.base.EscapedPath(), "/")+path)
	if err != nil {
		return nil, err
	}
	u.RawQuery = query.Encode()
	header := http.Header{"X-Spinnaker-Anonymous": {"anonymous"}, "Accept": {"application/json"}}
	body, err := s.client.Get(ctx, egress.Request{URL: u, Header: header})
	return body, asNotFound(err, notfound.Spring, "Front50 does not have it")
}

func (s front50Fetcher) names(ctx context.Context) ([]string, error) {
	body, err := s.get(ctx, "/v2/pipelineTemplates", url.Values{"scopes": {"global"}})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var templates []struct {
		ID string `json:"id"`
	}
	if err := decodeAnswer(body, &templates); err != nil {
		return nil, unexpectedAnswer(s.base, "something else than a list of pipeline templates: "+err.Error())
	}
	names := []string{}
	known := map[string]bool{}
	for _, t := range templates {
		if !known[t.ID] {
			known[t.ID] = true
			names = append(names, t.ID)
		}
	}
	return names, nil
}

// Limits of an answer that is decoded as a whole.
const (
	maxAnswerBytes  = 16 << 20
	maxAnswerMemory = 64 << 20
)

func decodeAnswer(body io.Reader, into any) error {
	text, err := io.ReadAll(io.LimitReader(body, maxAnswerBytes+1))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if len(text) > maxAnswerBytes {
		return &egress.SizeError{Limit: maxAnswerBytes}
	}
	return exactjson.Unmarshal(text, into, exactjson.Limits{Bytes: maxAnswerMemory})
}

//nolint:unparam // the interface has the result
func (s front50Fetcher) versions(context.Context, string) ([]string, error) {
	return nil, &DownloadError{Message: "Artifact versions are not supported for artifact types that 'front50ArtifactCredentials' account handles"}
}
