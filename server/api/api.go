// Package api is Vedette's own REST API, /vedette/v1. The command line and the dashboard use
// it to read accounts, agents, feeds, kinds, objects and changes, and to execute operations.
// Answers about clusters include their freshness.
//
// openapi.yaml describes the API. The tests validate every response against it.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/latest"
	"github.com/vedette-io/vedette/server/api/accountfeeds"
	"github.com/vedette-io/vedette/server/api/operations"
	"github.com/vedette-io/vedette/server/api/parameters"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/kinds"
	"github.com/vedette-io/vedette/server/middleware"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/rest"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/read"
)

type objectStore interface {
	Objects(ctx context.Context, q read.Query) (read.Page, error)
	Object(ctx context.Context, account vedette.AccountName, key vedette.Key) (read.Row, error)
}

// accountStore reads accounts and the state of their feeds.
type accountStore interface {
	accountfeeds.Store
	ObjectCounts(ctx context.Context, accounts ...vedette.AccountName) (map[vedette.Kind]int64, error)
}

type operationStore interface {
	Operation(ctx context.Context, id vedette.OperationID) (history.Operation, error)
	Operations(ctx context.Context, q history.Query) ([]history.Operation, string, error)
}

type readStore interface {
	objectStore
	accountStore
	operationStore
}

// hub publishes changes after they are committed.
type hub interface {
	Subscribe(want func(commit.Change) bool) *ingest.Subscription
	// Await waits until the changes of other servers come, too.
	Await(ctx context.Context) error
}

// fleet knows the connected agents.
type fleet interface {
	// Agents returns the connected agents, and the servers that did not say which are connected to them.
	Agents(ctx context.Context) (agents []Agent, silent []vedette.ServerID)
	// AgentsOf returns the agents that serve an account or tried to, with no other account, as far as servers say so.
	AgentsOf(ctx context.Context, account vedette.AccountName) []Agent
	// Freshness returns the time up to which everything that the account's agent knew is
	// stored, and whether an agent reports the account now. The time is zero if it is unknown.
	Freshness(account vedette.AccountName) (seen time.Time, connected bool)
	// Completeness returns the time up to which all feeds of the account are complete that have a mark, also those
	// that are not live; zero if its agent does not know.
	Completeness(account vedette.AccountName) time.Time
}

// Config configures the API.
type Config struct {
	Store readStore
	Hub   hub
	Fleet fleet
	// Dispatch executes operations. If nil, operations are rejected.
	Dispatch dispatcher
	// Kinds knows what clusters serve; nil for a cache of this API alone, if there is a Dispatch.
	Kinds discoverer
	// History says how long operations are kept; nil if nobody knows.
	History func() History
	// OperationKey is the key of the digests of manifests in the history. With another one, or without one after
	// a restart, operations with manifests that are sent again are rejected. It must not be in the database.
	OperationKey []byte
	// Accounts carries out operators' decisions about accounts. If nil, they are rejected.
	Accounts accountAdmin
	// Authorizer decides what a caller may do. If nil, everything is allowed; only tests
	// should do this.
	Authorizer authorizer
	Log        *slog.Logger // nil discards the log

	Version string // of the server, for GET /vedette/v1/version
	// HasUpstream is set if there is a Clouddriver behind this server.
	HasUpstream bool
	// StaleAfter is how far a live feed may be behind before it is called stale. Zero means 30
	// s, which is three heartbeats.
	StaleAfter time.Duration
	// ReadLimiter bounds the memory of responses, StreamLimiter that of streams of changes;
	// both share it among callers. Nil means no limit.
	ReadLimiter, StreamLimiter *readlimit.Limiter
	// PageBytes is the maximum size of the objects of a page. Zero means 8 MiB.
	PageBytes int64
	// HeartbeatInterval is the time between heartbeats of a stream of changes. Zero means 10
	// s.
	HeartbeatInterval time.Duration
}

type api struct {
	Config
	accountFeeds *accountfeeds.Cache
	fleetStates  latest.Value[fleetState]
	kindLists    latest.Value[kindList]
	kinds        discoverer // nil if Dispatch and Kinds are
	operations   *operations.Runner
}

// New returns the handler of all paths below /vedette/v1.
func New(cfg Config) http.Handler {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Authorizer == nil {
		cfg.Authorizer = authorize.AllowAll{}
	}
	if cfg.StaleAfter == 0 {
		cfg.StaleAfter = 30 * time.Second
	}
	if cfg.PageBytes == 0 {
		cfg.PageBytes = 8 << 20
	}
	if cfg.HeartbeatInterval == 0 {
		cfg.HeartbeatInterval = 10 * time.Second
	}
	a := &api{Config: cfg, accountFeeds: accountfeeds.NewCache(cfg.Store),
		operations: operations.NewRunner(cfg.Dispatch, cfg.Store, cfg.OperationKey)}
	if a.kinds = cfg.Kinds; a.kinds == nil && cfg.Dispatch != nil {
		a.kinds = kinds.New(kinds.Config{Execute: cfg.Dispatch.Execute})
	}
	return a.router()
}

// route is a path with its method and handler.
type route struct {
	method string
	path   string
	handle func(w http.ResponseWriter, r *http.Request) error
}

// streamPaths are the paths whose responses are not compressed, because compression would
// delay them until a block is full.
var streamPaths = []string{"/vedette/v1/changes", "/vedette/v1/logs"}

// IsStream reports whether the response of a path may last for hours.
func IsStream(path string) bool { return slices.Contains(streamPaths, path) }

func (a *api) routes() []route {
	return []route{
		{http.MethodGet, "/vedette/v1/accounts", a.listAccounts},
		{http.MethodGet, "/vedette/v1/accounts/{name}", a.getAccount},
		{http.MethodDelete, "/vedette/v1/accounts/{name}", a.removeAccount},
		{http.MethodPost, "/vedette/v1/accounts/{name}/accept", a.acceptAccount},
		{http.MethodPost, "/vedette/v1/accounts/{name}/release", a.releaseAccount},
		{http.MethodGet, "/vedette/v1/agents", a.listAgents},
		{http.MethodGet, "/vedette/v1/feeds", a.listFeeds},
		{http.MethodGet, "/vedette/v1/kinds", a.listKinds},
		{http.MethodGet, "/vedette/v1/served-kinds", a.listServedKinds},
		{http.MethodGet, "/vedette/v1/names", a.listNames},
		{http.MethodGet, "/vedette/v1/objects", a.listObjects},
		{http.MethodGet, "/vedette/v1/objects/{account}/{kind}/{namespace}/{name}", a.getObject},
		{http.MethodGet, "/vedette/v1/changes", a.streamChanges},
		{http.MethodPost, "/vedette/v1/operations", a.postOperation},
		{http.MethodGet, "/vedette/v1/operations", a.listOperations},
		{http.MethodGet, "/vedette/v1/operations/{id}", a.getOperation},
		{http.MethodGet, "/vedette/v1/logs", a.streamLog},
		{http.MethodGet, "/vedette/v1/version", a.getVersion},
		{http.MethodGet, "/vedette/v1/openapi.yaml", a.getOpenAPIYAML},
		{http.MethodGet, "/vedette/v1/openapi.json", a.getOpenAPIJSON},
	}
}

// minGzipSize is the initial window of a TCP connection, ten segments. Smaller responses are
// not compressed, because they would not arrive sooner.
const minGzipSize = 14 << 10

func (a *api) router() http.Handler {
	gzipLarge, err := gzhttp.NewWrapper(gzhttp.MinSize(minGzipSize))
	if err != nil {
		panic(err) // the options contradict each other
	}
	mux := http.NewServeMux()
	for _, route := range a.routes() {
		handler := http.Handler(a.handleErrors(route.handle))
		switch {
		case route.method == http.MethodPost:
			handler = gzipLarge(handler)
		case !slices.Contains(streamPaths, route.path):
			handler = gzhttp.GzipHandler(handler)
		}
		mux.Handle(route.method+" "+route.path, handler)
	}
	rootHandler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := mux.Handler(r)
		if pattern == "" {
			a.handleUnrouted(w, r, mux)
			return
		}
		middleware.SetRoute(r, pattern)
		mux.ServeHTTP(w, r)
	})
	return middleware.CheckText(rootHandler, a.fail)
}

// handleUnrouted answers requests without a route, in the same form as other errors.
func (a *api) handleUnrouted(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	captured := headerCapture{header: http.Header{}}
	mux.ServeHTTP(&captured, r)
	if captured.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", captured.header.Get("Allow"))
		writeError(w, captured.status, "method_not_allowed", r.URL.Path+" does not support "+r.Method+": use "+captured.header.Get("Allow"))
		return
	}
	writeError(w, http.StatusNotFound, string(vedette.NotFound), "there is no path "+r.URL.Path+"; see /vedette/v1/openapi.yaml for all paths")
}

// headerCapture records the headers and status of a response, and discards the body.
type headerCapture struct {
	header http.Header
	status int
}

func (h *headerCapture) Header() http.Header         { return h.header }
func (h *headerCapture) WriteHeader(status int)      { h.status = status }
func (h *headerCapture) Write(b []byte) (int, error) { return len(b), nil }

func (a *api) getVersion(w http.ResponseWriter, r *http.Request) error {
	if _, err := parameters.Parse(r); err != nil {
		return err
	}
	return rest.WriteJSON(w, r, map[string]string{"version": a.Version})
}
