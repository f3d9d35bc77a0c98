// Package applications answers Clouddriver's requests about applications and what they consist of: clusters, server groups,
// instances, load balancers, security groups, and the dashboards of projects.
package applications

import (
	"context"
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/front50"
	"github.com/vedette-io/vedette/server/infrastructure"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store/read"
)

// Store reads what package infrastructure does not.
type Store interface {
	Feeds(ctx context.Context, accounts ...vedette.AccountName) ([]read.FeedStatus, error)
	Inventory(ctx context.Context) (*read.Inventory, error)
	Object(ctx context.Context, account vedette.AccountName, key vedette.Key) (read.Row, error)
	Search(ctx context.Context, q read.SearchQuery) ([]read.SearchRow, error)
	CountSearch(ctx context.Context, q read.SearchQuery) (int64, error)
}

// Authorizer decides who has access. Its errors are sent to the client unchanged.
type Authorizer interface {
	CheckAccount(ctx context.Context, c authorize.Caller, account vedette.AccountName, access authorize.Access) error
	CheckApplication(ctx context.Context, c authorize.Caller, application string, access authorize.Access) error
	// Readable returns nil if the caller may read all accounts.
	Readable(ctx context.Context, c authorize.Caller) (func(vedette.AccountName) bool, error)
	// ReadableApplications returns nil if the caller may read all applications.
	ReadableApplications(ctx context.Context, c authorize.Caller) (func(application string) bool, error)
}

// ProjectStore reads projects.
type ProjectStore interface {
	Project(ctx context.Context, name string, header http.Header) (front50.Project, error)
}

// Config has what requests are answered from.
type Config struct {
	Store      Store
	Views      *infrastructure.Reader
	Authorizer Authorizer
	// Connected reports whether an agent reports the account now.
	Connected func(account vedette.AccountName) bool
	// Projects reads the projects of Spinnaker. If nil, dashboards of projects are unavailable.
	Projects    ProjectStore
	ReadLimiter *readlimit.Limiter
}

type api struct {
	Config
	list         applicationCache
	rawResources rawResourceFilters
}

// Routes returns the routes.
func Routes(cfg Config) []web.Route {
	a := &api{Config: cfg}
	const cluster = "applications/{app}/clusters/{account}/{cluster}"
	return []web.Route{
		web.Handle("applications/{app}/loadBalancers", a.listLoadBalancers),
		web.Handle("{provider}/loadBalancers", a.listAllLoadBalancers),
		web.Handle("{provider}/loadBalancers/{name}", a.getLoadBalancerByName),
		web.Handle("{provider}/loadBalancers/{account}/{region}/{name}", a.getLoadBalancer),
		web.Handle("securityGroups", a.listSecurityGroups),
		web.Handle("securityGroups/{account}", a.listAccountSecurityGroups),
		web.Handle("securityGroups/{account}/{provider}", a.listProviderSecurityGroups),
		web.Handle("securityGroups/{account}/{provider}/{name}", a.listNamedSecurityGroups),
		web.Handle("securityGroups/{account}/{provider}/{region}/{name}", a.getSecurityGroup),
		web.Handle("applications/{app}/rawResources", a.listRawResources),

		web.Handle("applications", a.listApplications),
		web.Handle("applications/{app}", a.getApplication),
		web.Handle("applications/{app}/clusters", a.listClusters),
		web.Handle("applications/{app}/clusters/{account}", a.listAccountClusters),
		web.Handle(cluster, a.getCluster),
		web.Handle(cluster+"/{type}", a.getTypedCluster),
		web.Handle(cluster+"/{type}/serverGroups", a.listClusterServerGroups),
		web.Handle(cluster+"/{type}/serverGroups/{name}", a.getClusterServerGroup),
		web.Handle(cluster+"/{type}/{scope}/serverGroups/target/{target}", a.getTarget),
		web.Handle(cluster+"/{type}/{scope}/serverGroups/target/{target}/{summary}", a.getTargetSummary),
		web.Handle("applications/{app}/serverGroups", a.listServerGroups),
		web.Handle("applications/{app}/serverGroups/{account}/{region}/{name}", a.getServerGroup),
		web.Handle("applications/{app}/serverGroupManagers", a.listManagers),
		web.Handle("serverGroups", a.listServerGroupBatch),
		web.Handle("serverGroups/{account}/{region}/{name}", a.getServerGroup),
		web.Handle("instances/{account}/{location}/{id}", a.getInstance),
		web.Handle("projects/{project}/clusters", a.listProjectClusters),
	}
}
