// Package search answers Clouddriver's search, which finds objects, applications, clusters and projects by their names.
package search

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/front50"
	"github.com/vedette-io/vedette/server/infrastructure"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/rest"
	"github.com/vedette-io/vedette/server/store/read"
)

// Store finds objects by their keys.
type Store interface {
	Inventory(ctx context.Context) (*read.Inventory, error)
	Search(ctx context.Context, q read.SearchQuery) ([]read.SearchRow, error)
	CountSearch(ctx context.Context, q read.SearchQuery) (int64, error)
}

// authorizer decides who has access. Its errors are sent to the client unchanged.
type authorizer interface {
	// Readable returns nil if the caller may read all accounts.
	Readable(ctx context.Context, c authorize.Caller) (func(vedette.AccountName) bool, error)
	// ReadableApplications returns nil if the caller may read all applications.
	ReadableApplications(ctx context.Context, c authorize.Caller) (func(application string) bool, error)
}

// ProjectStore finds projects.
type ProjectStore interface {
	SearchProjects(ctx context.Context, parameters url.Values, limit int, header http.Header) ([]front50.Project, error)
}

// Config has what searches look into.
type Config struct {
	Store      Store
	Views      *infrastructure.Reader
	Authorizer authorizer
	// Projects finds the projects of Spinnaker. If nil, there are none.
	Projects    ProjectStore
	ReadLimiter *readlimit.Limiter
	Log         *slog.Logger
}

type api struct{ Config }

// Routes returns the routes.
func Routes(cfg Config) []web.Route {
	a := &api{cfg}
	return []web.Route{web.Handle("search", a.search)}
}

// resultBytes is about what a result takes until it is sent.
const resultBytes = 1 << 10

// search mirrors SearchController.search. First come direct hits, whose keys contain the text, then
// hits that are related to applications and clusters whose keys do. An object can be both.
func (a *api) search(w http.ResponseWriter, r *http.Request, _ web.Params) error {
	request, err := parseSearch(r.URL.Query())
	if err != nil {
		return err
	}
	skip, take := request.window()
	release, err := a.ReadLimiter.Acquire(r.Context(), readlimit.CallerOf(r), int64(take)*resultBytes+read.MaxSearchNames)
	if err != nil {
		return err
	}
	defer release()
	s, err := a.newSearch(r, request)
	if err != nil {
		return err
	}
	held := web.NewMemory(a.ReadLimiter, readlimit.CallerOf(r))
	defer held.Release()
	if err := held.Grow(r.Context(), s.logical.bytes()); err != nil {
		return err
	}
	results, err := s.page(r.Context(), skip, take)
	if err != nil {
		return err
	}
	results = append(results, a.searchProjects(r, request)...)
	return rest.WriteJSON(w, r, []searchView{{TotalMatches: len(results), PageNumber: request.page, PageSize: request.pageSize,
		Platform: request.resultPlatform(), Query: request.query, Results: results}})
}

// objectSearch is one search, on behalf of one caller.
type objectSearch struct {
	store    Store
	request  searchRequest
	pattern  keyPattern
	query    read.SearchQuery
	logical  logicalMatches
	settings *infrastructure.Settings
}

func (a *api) newSearch(r *http.Request, request searchRequest) (*objectSearch, error) {
	caller := authorize.CallerOf(r)
	readable, err := a.Authorizer.Readable(r.Context(), caller)
	if err != nil {
		return nil, err
	}
	applications, err := a.Authorizer.ReadableApplications(r.Context(), caller)
	if err != nil {
		return nil, err
	}
	settings, err := a.Views.Settings(r.Context())
	if err != nil {
		return nil, err
	}
	inventory, err := a.Store.Inventory(r.Context())
	if err != nil {
		return nil, err
	}
	s := &objectSearch{store: a.Store, request: request, pattern: newKeyPattern(request.text), settings: settings}
	s.query = read.SearchQuery{Text: request.text, KeyPrefix: infrastructurePrefix, KindName: request.searchedKind, CanRead: readable,
		OnlyManaged: settings.OnlyManaged, Rules: settings.SearchRules()}
	if applications != nil {
		s.query.Rules = append(s.query.Rules, read.ApplicationRule{Shows: orNone(applications)})
	}
	isShown := func(application string) bool {
		return settings.Known(application) && (applications == nil || applications(application))
	}
	s.logical = s.pattern.matchInventory(inventory, isShown, func(account vedette.AccountName, c read.Cluster) bool {
		return (readable == nil || readable(account)) && settings.ShowsCluster(account, c)
	})
	return s, nil
}

// searchedKind returns the name of a kind if it is searched. Custom kinds are not.
func (s searchRequest) searchedKind(kind vedette.Kind) string {
	if name := manifest.KindName(kind); vedette.IsNativeGroup(kind.Group) && s.types[name] {
		return name
	}
	return ""
}

// orNone adds what belongs to no application to the applications that a caller may read: it needs only the
// permission for its account.
func orNone(readable func(application string) bool) func(string) bool {
	return func(application string) bool { return application == "" || readable(application) }
}

// page returns the results of a page. It has no holes where the caller may not read something, because they would
// tell him that it matches.
func (s *objectSearch) page(ctx context.Context, skip int64, take int) ([]any, error) {
	p := &resultPage{skip: skip, take: take, results: []any{}}
	p.addList(s.logical.direct(s.request.types))
	err := p.addObjects(ctx, s, s.query, func(row read.SearchRow) any { return newObjectResult(row.Account, row.Key) })
	if err != nil {
		return nil, err
	}
	p.addList(s.logical.related(s.request.types))
	related := s.query
	related.Related = &read.RelatedQuery{ApplicationPrefix: applicationPrefix, ClusterPrefix: clusterPrefix, Applications: s.logical.names(),
		Kinds: infrastructure.LogicalKinds, AllKinds: s.settings.RelatesAll}
	err = p.addObjects(ctx, s, related, s.newRelatedResult)
	return p.results, err
}

// newRelatedResult names the application and the cluster by which an object was found.
func (s *objectSearch) newRelatedResult(row read.SearchRow) any {
	r := newObjectResult(row.Account, row.Key)
	if s.pattern.matchesApplication(row.Application) {
		r.Application = row.Application
	}
	if row.Cluster != "" && s.pattern.matchesCluster(string(row.Account), row.Application, row.Cluster) {
		r.Cluster = row.Cluster
	}
	return r
}

// resultPage collects one page of several lists that follow each other.
type resultPage struct {
	skip    int64 // results of lists that are still to come
	take    int   // results that the page still has room for
	results []any
}

func (p *resultPage) addList(list []any) {
	if p.skip >= int64(len(list)) {
		p.skip -= int64(len(list))
		return
	}
	list = list[p.skip:]
	list = list[:min(len(list), p.take)]
	p.results = append(p.results, list...)
	p.skip, p.take = 0, p.take-len(list)
}

// addObjects adds what a query finds. It counts the objects only if the page begins after them.
func (p *resultPage) addObjects(ctx context.Context, s *objectSearch, q read.SearchQuery, convert func(read.SearchRow) any) error {
	if p.take == 0 {
		return nil
	}
	q.Offset, q.Limit = p.skip, p.take
	rows, err := s.store.Search(ctx, q)
	if err != nil {
		return err
	}
	p.take -= len(rows)
	for _, row := range rows {
		p.results = append(p.results, convert(row))
	}
	if len(rows) > 0 || p.skip == 0 {
		p.skip = 0
		return nil
	}
	n, err := s.store.CountSearch(ctx, q)
	p.skip -= min(n, p.skip)
	return err
}

// logicalMatches are the applications and clusters whose keys contain the text.
type logicalMatches struct {
	applications []string
	clusters     []matchedCluster // sorted by application
}

type matchedCluster struct {
	account              vedette.AccountName
	application, cluster string
	direct               bool // its own key contains the text, not only its application's
}

// matchInventory looks for applications and clusters of which the caller may see any objects.
func (p keyPattern) matchInventory(inventory *read.Inventory, isShown func(application string) bool,
	shows func(account vedette.AccountName, c read.Cluster) bool) logicalMatches {
	var m logicalMatches
	for _, name := range inventory.Applications() {
		if isShown(name) {
			m.addApplication(p, inventory.Application(name), shows)
		}
	}
	return m
}

func (m *logicalMatches) addApplication(p keyPattern, application *read.Application,
	shows func(account vedette.AccountName, c read.Cluster) bool) {
	isMatch, isShown := p.matchesApplication(application.Name), false
	for _, account := range application.Accounts {
		isShown = isShown || shows(account.Account, account.Unclustered)
		for _, c := range account.Clusters {
			if !shows(account.Account, c) {
				continue
			}
			isShown = true
			isDirect := p.matchesCluster(string(account.Account), application.Name, c.Name)
			if isDirect || isMatch {
				m.clusters = append(m.clusters, matchedCluster{account.Account, application.Name, c.Name, isDirect})
			}
		}
	}
	if isMatch && isShown {
		m.applications = append(m.applications, application.Name)
	}
}

// logicalBytes is about what a matched application or cluster takes, with its results.
const logicalBytes = 1 << 10

func (m *logicalMatches) bytes() int { return logicalBytes * (len(m.applications) + len(m.clusters)) }

// direct returns the results for the applications and clusters themselves.
func (m *logicalMatches) direct(types map[string]bool) []any {
	var results []any
	for _, name := range m.applications {
		if types[applicationType] {
			results = append(results, newApplicationResult(name))
		}
	}
	for _, c := range m.clusters {
		if types[clusterType] && c.direct {
			results = append(results, newClusterResult(c.account, c.application, c.cluster))
		}
	}
	return results
}

// related returns the results for applications of clusters, and for clusters of applications.
func (m *logicalMatches) related(types map[string]bool) []any {
	results := m.relatedApplications(types)
	matched := map[string]bool{}
	for _, name := range m.applications {
		matched[name] = true
	}
	for _, c := range m.clusters {
		if types[clusterType] && matched[c.application] {
			results = append(results, newClusterResult(c.account, c.application, c.cluster))
		}
	}
	return results
}

// relatedApplications returns each application of a cluster once, with the last of its clusters.
func (m *logicalMatches) relatedApplications(types map[string]bool) []any {
	var results []any
	last := ""
	for _, c := range slices.Backward(m.clusters) {
		if types[applicationType] && c.direct && c.application != last {
			r := newApplicationResult(c.application)
			r.Cluster, last = c.cluster, c.application
			results = append(results, r)
		}
	}
	slices.Reverse(results)
	return results
}

// names returns the applications whose objects may be related.
func (m *logicalMatches) names() []string {
	names := slices.Clone(m.applications)
	for _, c := range m.clusters {
		names = append(names, c.application)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
