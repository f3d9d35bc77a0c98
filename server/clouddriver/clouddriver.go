// Package clouddriver implements the part of Clouddriver's REST API that Gate, Orca, Deck,
// Fiat and Echo use. Answers come from the store and look like those of Clouddriver's
// Kubernetes provider, including quirks that callers depend on.
//
// It answers requests about accounts, operations and artifacts. The families of endpoints with more code have packages of their own,
// applications, manifests and search; package web has what all of them share.
package clouddriver

import (
	"context"
	"log/slog"
	"net/http"
	"slices"

	"github.com/klauspost/compress/gzhttp"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/latest"
	"github.com/vedette-io/vedette/server/accountlist"
	"github.com/vedette-io/vedette/server/artifacts"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/applications"
	"github.com/vedette-io/vedette/server/clouddriver/manifests"
	"github.com/vedette-io/vedette/server/clouddriver/search"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/discover"
	"github.com/vedette-io/vedette/server/infrastructure"
	"github.com/vedette-io/vedette/server/middleware"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/task"
)

// accountStore reads what lists of accounts show.
type accountStore interface {
	accountlist.Store
	Namespaces(ctx context.Context, accounts ...vedette.AccountName) (map[vedette.AccountName][]string, error)
}

// knownApplications decides which applications views show.
type knownApplications interface {
	// Snapshot returns a function that reports whether an application is shown, and a version that
	// changes with what it reports.
	Snapshot() (known func(application string) bool, version uint64)
}

type readStore interface {
	infrastructure.Store
	applications.Store
	search.Store
	manifests.Store
	accountStore
	operationStore
	healthStore
}

type projectStore interface {
	applications.ProjectStore
	search.ProjectStore
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
	// Accounts are those in the store. If nil, it is a list for this API alone.
	Accounts *accountlist.Cache
	// Authorizer decides who has access. If nil, everyone has; only tests should do this.
	Authorizer applications.Authorizer
	// Dispatch executes operations in clusters. If nil, only the store answers.
	Dispatch   manifests.Dispatcher
	AgentCount func() int // number of connected agents; nil means none
	// Agents returns the connected agents of all servers, and the servers that do not say which they have. Nil means no agents.
	Agents func(ctx context.Context) (agents []Agent, silent []vedette.ServerID)
	// Forwarding takes operations and results of other servers. If nil, their paths do not exist.
	Forwarding forwarding
	// Servers returns those that may share the database; nil while they are not known.
	Servers func() []discover.Server
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

	// Reloadable is what can change while the server runs; nil for the defaults.
	Reloadable *Reloadable
	// ConfigDetails is what /health shows about the server's configuration; nil for nothing.
	ConfigDetails func() map[string]any
	// OmitPodStatus leaves pods out of the views of Jobs (kubernetes.jobs.detailed-pod-status:
	// false).
	OmitPodStatus bool
}

type api struct {
	Config
	credentials latest.Value[credentialSet]
	views       *infrastructure.Reader
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
	if cfg.Agents == nil {
		cfg.Agents = func(context.Context) ([]Agent, []vedette.ServerID) { return nil, nil }
	}
	if cfg.Authorizer == nil {
		cfg.Authorizer = authorize.AllowAll{}
	}
	if cfg.Connected == nil {
		cfg.Connected = func(vedette.AccountName) bool { return true }
	}
	if cfg.Servers == nil {
		cfg.Servers = func() []discover.Server { return nil }
	}
	if cfg.Artifacts == nil {
		cfg.Artifacts = artifacts.New(artifacts.Config{})
	}
	if cfg.Reloadable == nil {
		cfg.Reloadable = &Reloadable{}
	}
	if cfg.Accounts == nil {
		cfg.Accounts = accountlist.NewCache(cfg.Store)
	}
	a := &api{Config: cfg, views: infrastructure.NewReader(infrastructure.Config{Store: cfg.Store, Accounts: cfg.Accounts,
		Limiter: cfg.ReadLimiter, Bytes: cfg.ViewBytes, Applications: cfg.Applications, OnRead: cfg.OnViewRead})}
	checked := middleware.CheckText(gzhttp.GzipHandler(web.NewRouter(a.routes(), cfg.Log)), web.Fail(cfg.Log))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { checked.ServeHTTP(w, middleware.LiteralSemicolons(r)) })
}

// Routes returns the patterns of all routes with their methods, for example "POST {provider}/ops".
func Routes() []string {
	var patterns []string
	for _, r := range (&api{Config: Config{Tasks: struct{ taskService }{}, Forwarding: struct{ forwarding }{}}}).routes() {
		patterns = append(patterns, r.Method()+" "+r.Path())
	}
	return patterns
}

// routes returns the routes in the order in which they are matched. They mirror the
// controllers in
// https://github.com/spinnaker/clouddriver/tree/master/clouddriver-web/src/main/groovy/com/netflix/spinnaker/clouddriver/controllers
func (a *api) routes() []web.Route {
	return slices.Concat(
		otherProviderRoutes(),
		accountManagementRoutes(),
		applications.Routes(applications.Config{Store: a.Store, Views: a.views, Authorizer: a.Authorizer, Connected: a.Connected,
			Projects: a.Projects, ReadLimiter: a.ReadLimiter}),
		search.Routes(search.Config{Store: a.Store, Views: a.views, Authorizer: a.Authorizer, Projects: a.Projects,
			ReadLimiter: a.ReadLimiter, Log: a.Log}),
		manifests.Routes(manifests.Config{Store: a.Store, Authorizer: a.Authorizer, Dispatch: a.Dispatch, Connected: a.Connected,
			ReadLimiter: a.ReadLimiter, OmitPodStatus: a.OmitPodStatus, Log: a.Log}),
		a.credentialRoutes(), a.artifactRoutes(), a.adminRoutes(), a.operationRoutes(), a.forwardingRoutes(),
	)
}
