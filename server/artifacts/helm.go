package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/internal/requestid"
	"github.com/vedette-io/vedette/server/artifacts/egress"
)

// HelmAccount is a Helm repository, of which charts and the index are fetched.
type HelmAccount struct {
	// Name of the account.
	Name string `config:"name"`
	// URL of the repository, without index.yaml.
	Repository string `config:"repository"`
	BasicLogin
}

func (a HelmAccount) login() login { return newLogin(a.BasicLogin, TokenLogin{}) }

const (
	chartType = "helm/chart"
	indexType = "helm/index"
)

// maxChartURLs bounds how many servers one fetch tries. Each may take its whole time limit.
const maxChartURLs = 8

// helmFetcher reads the index anew for each chart: charts are released at any time, and a pipeline
// that was triggered by one expects to find it.
type helmFetcher struct {
	config   HelmAccount
	client   *egress.Client
	maxIndex int64
	memory   *fair.Line
}

func (a HelmAccount) fetcher(cfg Config, client *egress.Client, memory *fair.Line) fetcher {
	return helmFetcher{config: a, client: client, maxIndex: cfg.Limits.MaxIndexBytes, memory: memory}
}

func (s helmFetcher) account() Account {
	return Account{s.config.Name, []string{chartType, indexType}, "artifacts-helm"}
}
func (helmFetcher) handles(artifactType string) bool {
	return artifactType == chartType || artifactType == indexType
}

func (s helmFetcher) fetch(ctx context.Context, r Request) (io.ReadCloser, error) {
	if r.Artifact.Type == indexType {
		return s.index(ctx)
	}
	charts, err := s.charts(ctx, r.Caller, r.Artifact.Name)
	if err != nil {
		return nil, err
	}
	wanted := strings.TrimSpace(versionOf(r.Artifact, ""))
	if wanted == "" {
		wanted = latest(charts)
	}
	err = vedette.Errorf(vedette.Invalid, "Could not find correct entry with artifact version %.100s", wanted)
	for _, location := range urlsOf(charts, wanted) {
		body, getErr := s.getChart(ctx, location)
		if getErr == nil {
			return body, nil
		}
		err = getErr // that of the last URL
	}
	return nil, err
}

// urlsOf returns where a version can be fetched, as many places as are tried.
func urlsOf(charts []chart, wanted string) []string {
	var urls []string
	for _, c := range charts {
		if c.Version == wanted {
			urls = append(urls, c.URLs...)
		}
	}
	return urls[:min(len(urls), maxChartURLs)]
}

// index requests the index of the repository.
func (s helmFetcher) index(ctx context.Context) (io.ReadCloser, error) {
	base, err := s.base()
	if err != nil {
		return nil, err
	}
	return s.get(ctx, base.JoinPath("index.yaml"), s.maxIndex)
}

// base returns the URL of the repository with a slash at its end, to which URLs of charts are
// relative.
func (s helmFetcher) base() (*url.URL, error) {
	base, err := url.Parse(s.config.Repository)
	if err != nil || base.Host == "" {
		return nil, errors.New("the account's repository is not a URL")
	}
	if !strings.HasSuffix(base.Path, "/") {
		base = base.JoinPath("/")
	}
	return base, nil
}

func (s helmFetcher) get(ctx context.Context, u *url.URL, maxBytes int64) (io.ReadCloser, error) {
	header, err := s.config.login().header("", "")
	if err != nil {
		return nil, err
	}
	requestid.SetHeader(ctx, header)
	return s.client.Get(ctx, egress.Request{URL: u, Header: header, MaxBytes: maxBytes})
}

// getChart requests a chart. Credentials go to the host of the repository only: an index can name
// any other host, and charts there are public.
func (s helmFetcher) getChart(ctx context.Context, location string) (io.ReadCloser, error) {
	base, err := s.base()
	if err != nil {
		return nil, err
	}
	u, err := base.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("the index of %s has an invalid URL for the chart", base.Host)
	}
	if u.Scheme == base.Scheme && strings.EqualFold(u.Host, base.Host) {
		return s.get(ctx, u, 0)
	}
	return s.client.Get(ctx, egress.Request{URL: u, Header: http.Header{}})
}

func (s helmFetcher) charts(ctx context.Context, caller, name string) ([]chart, error) {
	if name == "" {
		return nil, vedette.Errorf(vedette.Invalid, "Artifact name field should not be empty")
	}
	var charts []chart
	held := &arrivals{memory: s.memory, caller: caller}
	defer held.release()
	err := s.scan(ctx, held, func(e indexEntry) error {
		if e.name != name {
			return nil
		}
		held.release() // whoever waits for more holds nothing; parsing counts the text, too
		grant, err := s.memory.Acquire(ctx, caller, e.memory())
		if err != nil {
			return fmt.Errorf("wait for memory that other artifacts use: %w", err)
		}
		defer grant.Release()
		if charts, err = e.charts(); err != nil {
			return err
		}
		return errStopScan
	})
	if err == nil && len(charts) == 0 {
		return nil, vedette.Errorf(vedette.Invalid, "Could not find correct entry with artifact name %.300s", name)
	}
	return charts, err
}

func (s helmFetcher) names(ctx context.Context) ([]string, error) {
	names := []string{}
	held := &arrivals{memory: s.memory, caller: listCaller}
	defer held.release()
	var list listLimit
	err := s.scan(ctx, held, func(e indexEntry) error {
		names = append(names, e.name)
		return list.add(e.name)
	})
	return names, err
}

func (s helmFetcher) versions(ctx context.Context, name string) ([]string, error) {
	charts, err := s.charts(ctx, listCaller, name)
	if err != nil {
		return nil, err
	}
	versions := []string{}
	var list listLimit
	for _, c := range charts {
		if err := list.add(c.Version); err != nil {
			return nil, err
		}
		versions = append(versions, c.Version)
	}
	return versions, nil
}

// Limits of lists of names and versions, which are in memory and are not paid for.
const (
	maxListed      = 100_000
	maxListedBytes = 4 << 20
)

// listLimit bounds a list of names or versions.
type listLimit struct{ count, bytes int }

func (l *listLimit) add(text string) error {
	l.count++
	l.bytes += len(text)
	if l.count > maxListed || l.bytes > maxListedBytes {
		return vedette.Errorf(vedette.Invalid, "the index has more than %d names or versions, or more than %d MiB of them: name the chart and its version",
			maxListed, maxListedBytes>>20)
	}
	return nil
}

// scan visits the charts of the index. What arrives of one takes memory from held.
func (s helmFetcher) scan(ctx context.Context, held *arrivals, visit func(indexEntry) error) error {
	body, err := s.index(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := scanIndex(body, held.pay, visit); err != nil && !errors.Is(err, errStopScan) {
		return fmt.Errorf("read the index of repository %s: %w", s.config.Name, err)
	}
	return nil
}

// latest returns the highest version. Versions that are not semantic are lower than all others.
func latest(charts []chart) string {
	if len(charts) == 0 {
		return ""
	}
	return slices.MaxFunc(charts, func(a, b chart) int { return compareVersions(a.Version, b.Version) }).Version
}

func compareVersions(a, b string) int {
	x, xErr := version.ParseSemantic(a)
	y, yErr := version.ParseSemantic(b)
	switch {
	case xErr != nil && yErr != nil:
		return strings.Compare(a, b)
	case xErr != nil:
		return -1
	case yErr != nil:
		return 1
	case x.LessThan(y):
		return -1
	case y.LessThan(x):
		return 1
	}
	return 0
}
