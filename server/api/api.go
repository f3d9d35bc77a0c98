// Package api is Vedette's own REST API, /vedette/v1: accounts, agents, feeds,
// kinds, objects and their changes, as the command line and the dashboard read
// them. It only reads. Whatever it answers says how fresh it is.
//
// openapi.yaml describes it; the tests hold every answer against that.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/ingest"
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

type reader interface {
	objects
	status
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
	// Authority decides whose objects a caller may read. Nil lets everyone read,
	// which only tests should.
	Authority authority
	Log       *slog.Logger // nil: nothing is logged

	Version string // of the server, for GET /vedette/v1/version
	// StaleAfter is how far behind a feed may be that its agent says is live
	// before it is called stale. Zero means 30 s, three pulses.
	StaleAfter time.Duration
	// Heartbeat is the time between two heartbeats of a stream of changes. Zero
	// means 10 s.
	Heartbeat time.Duration
}

type api struct {
	Config
	catalog *catalog
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
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = 10 * time.Second
	}
	a := &api{Config: cfg, catalog: &catalog{store: cfg.Store}}
	return a.router()
}

// route is a path that is answered, and by whom.
type route struct {
	path   string
	handle func(w http.ResponseWriter, r *http.Request) error
}

func (a *api) routes() []route {
	return []route{
		{"/vedette/v1/accounts", a.listAccounts},
		{"/vedette/v1/accounts/{name}", a.getAccount},
		{"/vedette/v1/agents", a.listAgents},
		{"/vedette/v1/feeds", a.listFeeds},
		{"/vedette/v1/kinds", a.listKinds},
		{"/vedette/v1/objects", a.listObjects},
		{"/vedette/v1/objects/{account}/{kind}/{namespace}/{name}", a.getObject},
		{"/vedette/v1/changes", a.streamChanges},
		{"/vedette/v1/version", a.getVersion},
		{"/vedette/v1/openapi.yaml", a.getDocumentYAML},
		{"/vedette/v1/openapi.json", a.getDocumentJSON},
	}
}

func (a *api) router() http.Handler {
	mux := http.NewServeMux()
	for _, route := range a.routes() {
		handler := http.Handler(a.answering(route.handle))
		if route.path != "/vedette/v1/changes" { // a stream must not wait for a block to fill
			handler = gzhttp.GzipHandler(handler)
		}
		mux.Handle("GET "+route.path, handler)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" {
			a.refuse(w, r, mux)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// refuse answers what no route takes, in the form of all other errors.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	answer := headerOnly{header: http.Header{}}
	mux.ServeHTTP(&answer, r)
	if answer.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", answer.header.Get("Allow"))
		writeError(w, answer.status, "method_not_allowed", "this API only reads: use GET")
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
