// Package api is Vedette's own REST API, /vedette/v1: accounts, agents, feeds,
// kinds, objects and their changes, as the command line and the dashboard read
// them, and operations on them. What it tells of clusters says how fresh it is.
//
// openapi.yaml describes it; the tests hold every answer against that.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/middleware"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store"
)

// objects is where objects come from.
type objects interface {
	Objects(ctx context.Context, q store.Query) (store.Page, error)
	Object(ctx context.Context, account vedette.AccountName, key vedette.Key) (store.Row, error)
}

// status is where it comes from how they are doing.
type status interface {
	Accounts(ctx context.Context) ([]store.AccountRow, error)
	Feeds(ctx context.Context, accounts ...vedette.AccountName) ([]store.FeedStatus, error)
}

// history is where operations are remembered.
type history interface {
	Operation(ctx context.Context, id vedette.OperationID) (store.OperationRow, error)
	Operations(ctx context.Context, q store.OperationQuery) ([]store.OperationRow, string, error)
}

type reader interface {
	objects
	status
	history
}

// hub tells of changes after their commit.
type hub interface {
	Subscribe(want func(store.Change) bool) *ingest.Subscription
}

// fleet knows which agents are connected.
type fleet interface {
	Agents() []Agent
	// Freshness returns up to when all that the account's agent knew is stored,
	// zero where that is not known, and whether an agent reports the account now.
	Freshness(account vedette.AccountName) (seen time.Time, live bool)
}

// Config is what the API reads from.
type Config struct {
	Store reader
	Hub   hub
	Fleet fleet
	// Operations has operations carried out. Nil: none are.
	Operations dispatcher
	// Authority decides what a caller may do. Nil lets everyone do everything,
	// which only tests should.
	Authority authority
	Log       *slog.Logger // nil: nothing is logged

	Version string // of the server, for GET /vedette/v1/version
	// StaleAfter is how far behind a feed may be that its agent says is live
	// before it is called stale. Zero means 30 s, three pulses.
	StaleAfter time.Duration
	// Reads shares the memory of answers among those who ask for them, Streams that of
	// streams of changes. Nil: there is no limit.
	Reads, Streams *readlimit.Limiter
	// PageBytes is how many bytes of objects a page holds at most. Zero means 8 MiB.
	PageBytes int64
	// Heartbeat is the time between two heartbeats of a stream of changes. Zero
	// means 10 s.
	Heartbeat time.Duration
}

type api struct {
	Config
	catalog *catalog
	flights *flights
}

// New returns the handler of all paths below /vedette/v1.
func New(cfg Config) http.Handler {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Authority == nil {
		cfg.Authority = open{}
	}
	if cfg.StaleAfter == 0 {
		cfg.StaleAfter = 30 * time.Second
	}
	if cfg.PageBytes == 0 {
		cfg.PageBytes = 8 << 20
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = 10 * time.Second
	}
	a := &api{Config: cfg, catalog: &catalog{store: cfg.Store}, flights: newFlights()}
	return a.router()
}

// route is a path that is answered, how it is asked, and by whom.
type route struct {
	method string
	path   string
	handle func(w http.ResponseWriter, r *http.Request) error
}

// streams are the paths whose answers must not wait for a block to fill.
var streams = []string{"/vedette/v1/changes", "/vedette/v1/logs"}

func (a *api) routes() []route {
	return []route{
		{http.MethodGet, "/vedette/v1/accounts", a.listAccounts},
		{http.MethodGet, "/vedette/v1/accounts/{name}", a.getAccount},
		{http.MethodGet, "/vedette/v1/agents", a.listAgents},
		{http.MethodGet, "/vedette/v1/feeds", a.listFeeds},
		{http.MethodGet, "/vedette/v1/kinds", a.listKinds},
		{http.MethodGet, "/vedette/v1/objects", a.listObjects},
		{http.MethodGet, "/vedette/v1/objects/{account}/{kind}/{namespace}/{name}", a.getObject},
		{http.MethodGet, "/vedette/v1/changes", a.streamChanges},
		{http.MethodPost, "/vedette/v1/operations", a.postOperation},
		{http.MethodGet, "/vedette/v1/operations", a.listOperations},
		{http.MethodGet, "/vedette/v1/operations/{id}", a.getOperation},
		{http.MethodGet, "/vedette/v1/logs", a.streamLog},
		{http.MethodGet, "/vedette/v1/version", a.getVersion},
		{http.MethodGet, "/vedette/v1/openapi.yaml", a.getDocumentYAML},
		{http.MethodGet, "/vedette/v1/openapi.json", a.getDocumentJSON},
	}
}

// firstFlight is what a connection may send before it waits for its reader, ten
// segments of TCP. What fits into that arrives no sooner for being smaller.
const firstFlight = 14 << 10

func (a *api) router() http.Handler {
	thrifty, err := gzhttp.NewWrapper(gzhttp.MinSize(firstFlight))
	if err != nil {
		panic(err) // of options that contradict each other
	}
	mux := http.NewServeMux()
	for _, route := range a.routes() {
		handler := http.Handler(a.answering(route.handle))
		switch {
		case route.method == http.MethodPost:
			handler = thrifty(handler)
		case !slices.Contains(streams, route.path):
			handler = gzhttp.GzipHandler(handler)
		}
		mux.Handle(route.method+" "+route.path, handler)
	}
	known := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" {
			a.refuse(w, r, mux)
			return
		}
		mux.ServeHTTP(w, r)
	})
	return middleware.CheckText(known, a.fail)
}

// refuse answers what no route takes, in the form of all other errors.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	answer := headerOnly{header: http.Header{}}
	mux.ServeHTTP(&answer, r)
	if answer.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", answer.header.Get("Allow"))
		writeError(w, answer.status, "method_not_allowed", r.URL.Path+" takes no "+r.Method+": use "+answer.header.Get("Allow"))
		return
	}
	writeError(w, http.StatusNotFound, string(vedette.NotFound), "there is nothing at "+r.URL.Path+": see /vedette/v1/openapi.yaml for what there is")
}

// headerOnly keeps what a handler would have answered, but for the body.
type headerOnly struct {
	header http.Header
	status int
}

func (h *headerOnly) Header() http.Header         { return h.header }
func (h *headerOnly) WriteHeader(status int)      { h.status = status }
func (h *headerOnly) Write(b []byte) (int, error) { return len(b), nil }

func (a *api) getVersion(w http.ResponseWriter, r *http.Request) error {
	if _, err := parameters(r); err != nil {
		return err
	}
	return writeJSON(w, r, map[string]string{"version": a.Version})
}
