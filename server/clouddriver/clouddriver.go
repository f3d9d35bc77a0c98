// Package clouddriver answers the part of Clouddriver's REST API that Gate,
// Orca, Deck, Fiat and Echo ask for, out of the store: as the Kubernetes
// provider of Clouddriver would, quirks that its callers lean on included.
package clouddriver

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/klauspost/compress/gzhttp"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/middleware"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/task"
)

// accountStore is where accounts and what they report come from.
type accountStore interface {
	Accounts(ctx context.Context) ([]store.AccountRow, error)
	Account(ctx context.Context, name vedette.AccountName) (store.AccountRow, error)
	Feeds(ctx context.Context, accounts ...vedette.AccountName) ([]store.FeedStatus, error)
}

// objectStore is where objects come from.
type objectStore interface {
	Object(ctx context.Context, account vedette.AccountName, key vedette.Key) (store.Row, error)
	Objects(ctx context.Context, q store.Query) (store.Page, error)
	Ping(ctx context.Context) error
}

type readStore interface {
	accountStore
	objectStore
	operationStore
}

// authorizer says who may use what. Its errors are answered as they are.
type authorizer interface {
	CheckAccount(ctx context.Context, c authorize.Caller, account vedette.AccountName, access authorize.Access) error
	CheckApplication(ctx context.Context, c authorize.Caller, application string, access authorize.Access) error
	// Readable is nil where everyone may read everything.
	Readable(ctx context.Context, c authorize.Caller) (func(vedette.AccountName) bool, error)
}

// taskService is what carries operations out.
type taskService interface {
	Submit(ctx context.Context, requests []task.Request, o task.Options) (id string, err error)
	Restart(ctx context.Context, id string, requests []task.Request, o task.Options) error
	Cancel(ctx context.Context, id string, retry bool) error
	Get(ctx context.Context, id string) (task.Task, error)
	List(ctx context.Context) ([]task.Task, error)
}

// Config is what the API reads from, and how it names things.
type Config struct {
	Store readStore
	// Authorizer decides who may. Nil lets everyone, which only tests should.
	Authorizer authorizer
	// Dispatch reaches the clusters, for what is not stored. Nil: nothing but the
	// store answers.
	Dispatch   dispatcher
	AgentCount func() int // how many agents are connected; nil: none
	// Connected reports whether an agent reports the account now. Nil: always.
	Connected func(account vedette.AccountName) bool
	// Tasks carries operations out. Nil: there are no paths for them.
	Tasks taskService
	// ReadLimiter shares the memory of answers among those who ask for them. Nil: there is
	// no limit.
	ReadLimiter *readlimit.Limiter
	Log         *slog.Logger // nil: nothing is logged

	// PrimaryAccountTypes are the account types that make an account primary
	// (credentials.primaryAccountTypes). Nil means "default".
	PrimaryAccountTypes []string
	// ChallengeEnvironments are the environments in which Deck asks before it
	// destroys (credentials.challengeDestructiveActionsEnvironments). Nil means
	// "default".
	ChallengeEnvironments []string
	// OmitPodStatus leaves the pods out of what is told of a Job
	// (kubernetes.jobs.detailed-pod-status: false).
	OmitPodStatus bool
}

type api struct{ Config }

// New returns the handler of Clouddriver's paths. It must not stand behind a
// ServeMux: that redirects paths with an empty segment, by which Orca names
// what is in no namespace.
func New(cfg Config) http.Handler {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.AgentCount == nil {
		cfg.AgentCount = func() int { return 0 }
	}
	if cfg.Authorizer == nil {
		cfg.Authorizer = allowAll{}
	}
	if cfg.Connected == nil {
		cfg.Connected = func(vedette.AccountName) bool { return true }
	}
	if cfg.PrimaryAccountTypes == nil {
		cfg.PrimaryAccountTypes = []string{"default"}
	}
	if cfg.ChallengeEnvironments == nil {
		cfg.ChallengeEnvironments = []string{"default"}
	}
	a := &api{cfg}
	return middleware.CheckText(gzhttp.GzipHandler(a.router()), a.fail)
}

// routes are in the order in which they are tried. What they mirror is
// described at
// https://github.com/spinnaker/clouddriver/tree/master/clouddriver-web/src/main/groovy/com/netflix/spinnaker/clouddriver/controllers
func (a *api) router() router {
	routes := []route{
		{"health", a.health},
		{"credentials", a.listCredentials},
		{"credentials/{account}", a.getCredentials},
		{"credentials/{account}/authorized", a.getAuthorizedCredentials},
		{"manifests/{account}/{name}", a.getManifest},
		{"manifests/{account}/{location}/{name}", a.getManifest},
		{"manifests/{account}/{location}/{kind}/cluster/{app}/{cluster}", a.listCluster},
		{"manifests/{account}/{location}/{kind}/cluster/{app}/{cluster}/dynamic/{criteria}", a.getDynamicManifest},
		{"applications/{app}/jobs/{account}/{location}/{id}", a.getJob},
		{"POST applications/{app}/jobs/{account}/{location}/{id}", a.getJob}, // as Gate asks for it
		{"DELETE applications/{app}/jobs/{account}/{location}/{id}", a.cancelJob},
		{"applications/{app}/jobs/{account}/{location}/{id}/{container}", a.getJobProperties},
		{"applications/{app}/kubernetes/pods/{account}/{location}/{pod}/{container}", a.getPodProperties},
		{"instances/{account}/{location}/{id}/console", a.getConsole},
		{"artifacts/credentials", a.listArtifactAccounts},
		{"PUT artifacts/fetch", a.fetchArtifact},
		{"armory/agent/operations", a.listOperations},
		{"armory/agent/operations/{id}", a.getOperation},
	}
	if a.Tasks != nil {
		routes = append(routes, a.taskRoutes()...)
	}
	return router{api: a, routes: routes}
}

// allowAll lets everyone do everything.
type allowAll struct{}

func (allowAll) CheckAccount(context.Context, authorize.Caller, vedette.AccountName, authorize.Access) error {
	return nil
}

func (allowAll) CheckApplication(context.Context, authorize.Caller, string, authorize.Access) error {
	return nil
}

func (allowAll) Readable(context.Context, authorize.Caller) (func(vedette.AccountName) bool, error) {
	return nil, nil
}
