// Package clouddriver implements the part of Clouddriver's REST API that Gate, Orca, Deck,
// Fiat and Echo use. Answers come from the store and look like those of Clouddriver's
// Kubernetes provider, including quirks that callers depend on.
package clouddriver

import (
	"context"
	"log/slog"
	"net/http"
	"slices"

	"github.com/klauspost/compress/gzhttp"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/artifacts"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/infrastructure"
	"github.com/vedette-io/vedette/server/middleware"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/task"
)

// accountStore reads accounts and feeds.
type accountStore interface {
	Account(ctx context.Context, name vedette.AccountName) (store.AccountRow, error)
	Feeds(ctx context.Context, accounts ...vedette.AccountName) ([]store.FeedStatus, error)
	credentialStore
}

// credentialStore reads many accounts at once.
type credentialStore interface {
	Accounts(ctx context.Context) ([]store.AccountRow, error)
	AccountsNamed(ctx context.Context, names ...vedette.AccountName) ([]store.AccountRow, error)
	Namespaces(ctx context.Context, accounts ...vedette.AccountName) (map[vedette.AccountName][]string, error)
	ChangedAccounts(since uint64) (accounts []vedette.AccountName, now uint64)
}

// viewStore reads what list views show.
type viewStore interface {
	infrastructure.Store
	Inventory(ctx context.Context) (*store.Inventory, error)
}

// knownApplications decides which applications views show.
type knownApplications interface {
	// Known returns a function that reports whether an application is shown, and a version that
	// changes with what it reports.
	Known() (known func(application string) bool, version uint64)
}

// objectStore reads objects.
type objectStore interface {
	Object(ctx context.Context, account vedette.AccountName, key vedette.Key) (store.Row, error)
	Objects(ctx context.Context, q store.Query) (store.Page, error)
	Ping(ctx context.Context) error
}

type readStore interface {
	accountStore
	objectStore
	operationStore
	viewStore
	searchStore
}

// authorizer decides who has access. Its errors are sent to the client unchanged.
type authorizer interface {
	CheckAccount(ctx context.Context, c authorize.Caller, account vedette.AccountName, access authorize.Access) error
	CheckApplication(ctx context.Context, c authorize.Caller, application string, access authorize.Access) error
	// Readable returns nil if the caller may read all accounts.
	Readable(ctx context.Context, c authorize.Caller) (func(vedette.AccountName) bool, error)
	// ReadableApplications returns nil if the caller may read all applications.
	ReadableApplications(ctx context.Context, c authorize.Caller) (func(application string) bool, error)
}

// taskService runs operations.
type taskService interface {
	Submit(ctx context.Context, requests []task.Request, o task.Options) (id string, err error)
	Restart(ctx context.Context, id string, requests []task.Request, o task.Options) error
	Cancel(ctx context.Context, id string, retry bool) error
	Get(ctx context.Context, id string) (task.Task, error)
	List(ctx context.Context) ([]task.Task, error)
}

// Config configures the API.
type Config struct {
	Store readStore
	// Authorizer decides who has access. If nil, everyone has; only tests should do this.
	Authorizer authorizer
	// Dispatch executes operations in clusters. If nil, only the store answers.
	Dispatch   dispatcher
	AgentCount func() int // number of connected agents; nil means none
	// Connected reports whether an agent reports the account now. Nil means always.
	Connected func(account vedette.AccountName) bool
	// Tasks runs operations. If nil, their paths do not exist.
	Tasks taskService
	// Artifacts fetches artifacts. If nil, only those that contain their content.
	Artifacts artifactService
	// Remote returns the service that executes operations of other accounts for the sender of a
	// request. The provider may be empty. If nil, only accounts of agents have operations.
	Remote func(r *http.Request, provider string) task.Remote
	// ReadLimiter bounds the memory of responses and shares it among callers. Nil means no
	// limit.
	ReadLimiter *readlimit.Limiter
	// Applications decides which applications views show. If nil, they show all.
	Applications knownApplications
	// Projects reads the projects of Spinnaker. If nil, dashboards of projects are unavailable.
	Projects projectStore
	// ViewBytes limits the memory of applications that are kept between requests; 0 means the
	// default of package infrastructure.
	ViewBytes int64
	// OnViewRead is OnRead of package infrastructure.
	OnViewRead func(cached bool)
	Log        *slog.Logger // nil discards the log

	// Live is what can change while the server runs; nil for the defaults.
	Live *Live
	// ConfigDetails is what /health shows about the server's configuration; nil for nothing.
	ConfigDetails func() map[string]any
	// OmitPodStatus leaves pods out of the views of Jobs (kubernetes.jobs.detailed-pod-status:
	// false).
	OmitPodStatus bool
}

type api struct {
	Config
	credentials  *credentialCache
	views        *infrastructure.Reader
	applications applicationCache
	rawResources rawResourceFilters
}

// New returns the handler of Clouddriver's paths. It must not be registered with a ServeMux,
// because a ServeMux redirects paths with an empty segment. Orca uses an empty segment for the
// namespace of cluster-scoped objects.
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
	if cfg.Artifacts == nil {
		cfg.Artifacts = artifacts.New(artifacts.Config{})
	}
	if cfg.Live == nil {
		cfg.Live = &Live{}
	}
	reader := infrastructure.NewReader(infrastructure.Config{Store: cfg.Store, Limiter: cfg.ReadLimiter, Bytes: cfg.ViewBytes,
		Applications: cfg.Applications, OnRead: cfg.OnViewRead})
	a := &api{Config: cfg, views: reader}
	a.credentials = newCredentialCache(a)
	checked := middleware.CheckText(gzhttp.GzipHandler(a.router()), a.fail)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { checked.ServeHTTP(w, middleware.LiteralSemicolons(r)) })
}

// router returns the routes in the order in which they are matched. They mirror the
// controllers in
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
		{"POST applications/{app}/jobs/{account}/{location}/{id}", a.getJob}, // used by Gate
		{"DELETE applications/{app}/jobs/{account}/{location}/{id}", a.cancelJob},
		{"applications/{app}/jobs/{account}/{location}/{id}/{container}", a.getJobProperties},
		{"applications/{app}/kubernetes/pods/{account}/{location}/{pod}/{container}", a.getPodProperties},
		{"instances/{account}/{location}/{id}/console", a.getConsole},
		{"artifacts/credentials", a.listArtifactAccounts},
		{"PUT artifacts/fetch", a.fetchArtifact},
		{"artifacts/account/{account}/names", a.listArtifactNames},
		{"artifacts/account/{account}/versions", a.listArtifactVersions},
		{"artifacts/content-address/{app}/{hash}", a.getStoredArtifact},
		{"armory/agent/operations", a.listOperations},
		{"armory/agent/operations/{id}", a.getOperation},
	}
	routes = slices.Concat(otherProviderRoutes(), accountManagementRoutes(), a.infrastructureRoutes(), routes, a.viewRoutes())
	if a.Tasks != nil {
		routes = append(routes, a.taskRoutes()...)
	}
	return router{api: a, routes: routes}
}

// allowAll grants everything to everyone.
type allowAll struct{}

func (allowAll) CheckAccount(context.Context, authorize.Caller, vedette.AccountName, authorize.Access) error {
	return nil
}

func (allowAll) CheckApplication(context.Context, authorize.Caller, string, authorize.Access) error {
	return nil
}

func (allowAll) ReadableApplications(context.Context, authorize.Caller) (func(string) bool, error) {
	return nil, nil
}

func (allowAll) Readable(context.Context, authorize.Caller) (func(vedette.AccountName) bool, error) {
	return nil, nil
}
