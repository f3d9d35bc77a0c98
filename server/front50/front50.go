// Package front50 reads projects from Front50, Spinnaker's store of applications, projects and
// pipelines.
package front50

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/answer"
	"github.com/vedette-io/vedette/internal/mask"
	"github.com/vedette-io/vedette/internal/notfound"
	"github.com/vedette-io/vedette/internal/requestid"
	"github.com/vedette-io/vedette/internal/textcheck"
)

// Config configures requests to Front50.
type Config struct {
	// URL of Front50, for example http://spin-front50:8080. Without it, Spinnaker's project dashboards show no clusters.
	BaseURL string `config:"baseUrl"`

	Transport http.RoundTripper // nil means Go's default
}

// Validate checks the configuration.
func (c *Config) Validate() error {
	base, err := url.Parse(c.BaseURL)
	switch {
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		return vedette.Errorf(vedette.Invalid, "the address of Front50 must be a URL like http://spin-front50:8080, got %q", mask.URLs(c.BaseURL))
	case base.RawQuery != "" || base.Fragment != "":
		return vedette.Errorf(vedette.Invalid, "the address of Front50 must not have a query or a fragment, got %q", mask.URLs(c.BaseURL))
	}
	return nil
}

// Project is a project. A field that Front50 omits is nil, which differs from an empty one.
type Project struct {
	ID     string        `json:"id"`
	Name   string        `json:"name"`
	Config ProjectConfig `json:"config"`
}

// ProjectConfig is what a project consists of.
type ProjectConfig struct {
	Applications []string         `json:"applications"`
	Clusters     []ProjectCluster `json:"clusters"`
}

// ProjectCluster selects clusters of a project's applications.
type ProjectCluster struct {
	Account      string   `json:"account"`
	Stack        *string  `json:"stack"` // "*" means any; nil means none
	Detail       *string  `json:"detail"`
	Applications []string `json:"applications"` // nil means those of the project
}

// Client sends requests to Front50. It is safe for concurrent use.
type Client struct {
	base    string
	client  *http.Client
	answers *answer.Reader
}

// timeout limits a request.
const timeout = 10 * time.Second

// maxResponseBytes is much more than the projects of a large organization take.
const maxResponseBytes = 16 << 20

const (
	// maxDecodedBytes is the memory that an answer may take.
	maxDecodedBytes = 64 << 20
	// maxAnswersBytes is what all answers may take while they are read and decoded. Callers choose how many there
	// are at once.
	maxAnswersBytes = 96 << 20
	memoryTimeout   = 4 * time.Second // how long an answer waits for memory
)

// New returns a Client.
func New(cfg Config) *Client {
	answers := answer.NewReader(answer.Config{Service: "Front50", TextBytes: maxResponseBytes, DecodedBytes: maxDecodedBytes,
		Bytes: maxAnswersBytes, Wait: memoryTimeout})
	return &Client{base: strings.TrimRight(cfg.BaseURL, "/"), answers: answers, client: &http.Client{
		Transport: cfg.Transport, Timeout: timeout,
		// A redirect, for example to a login page, is not an answer.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Project returns a project by its name or id. header holds the caller's X-SPINNAKER headers. The
// error is vedette.NotFound if Front50 says that there is no such project, and vedette.Unavailable if it does
// not answer, or something else answers.
func (c *Client) Project(ctx context.Context, name string, header http.Header) (Project, error) {
	if !textcheck.IsPathSegment(name) {
		return Project{}, vedette.Errorf(vedette.NotFound, "%q is not the name of a project", name)
	}
	var p Project
	err := c.get(ctx, "/v2/projects/"+url.PathEscape(name), header, &p)
	return p, err
}

// SearchProjects returns at most limit projects that match all parameters, for example the name.
func (c *Client) SearchProjects(ctx context.Context, parameters url.Values, limit int, header http.Header) ([]Project, error) {
	query := url.Values{}
	maps.Copy(query, parameters)
	query.Set("pageSize", strconv.Itoa(limit))
	var list []Project
	err := c.get(ctx, "/v2/projects?"+query.Encode(), header, &list)
	return list[:min(len(list), limit)], err
}

// get requests a path and decodes the answer.
func (c *Client) get(ctx context.Context, path string, header http.Header, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return fmt.Errorf("request %s from Front50: %w", path, err)
	}
	maps.Copy(request.Header, header)
	request.Header.Set("Accept", "application/json")
	requestid.SetHeader(ctx, request.Header)
	response, err := c.client.Do(request)
	if err != nil {
		return vedette.Errorf(vedette.Unavailable, "Front50 does not answer: %w", err)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusNotFound && notfound.Spring(notfound.Read(response.Body)):
		return vedette.Errorf(vedette.NotFound, "Front50 does not have %s", path)
	case response.StatusCode == http.StatusNotFound:
		return vedette.Errorf(vedette.Unavailable, "Front50 answered %s to GET %s, %s", response.Status, path, notfound.Hint)
	case response.StatusCode != http.StatusOK:
		return vedette.Errorf(vedette.Unavailable, "Front50 answered %s to GET %s", response.Status, path)
	}
	memory := c.answers.Begin(header.Get("X-Spinnaker-User"))
	defer memory.Release()
	if err := memory.Read(ctx, response.Body, into); err != nil {
		return vedette.Errorf(vedette.Unavailable, "read Front50's answer to GET %s: %w", path, err)
	}
	return nil
}
