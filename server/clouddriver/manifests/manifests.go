// Package manifests answers Clouddriver's requests about single manifests, and those of Jobs and the logs of containers. Objects come
// from the store while their feed is live, and otherwise from the cluster.
package manifests

import (
	"context"
	"log/slog"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
)

// Store reads objects, and the accounts and feeds that they belong to.
type Store interface {
	Account(ctx context.Context, name vedette.AccountName) (registry.Account, error)
	Feeds(ctx context.Context, accounts ...vedette.AccountName) ([]read.FeedStatus, error)
	Object(ctx context.Context, account vedette.AccountName, key vedette.Key) (read.Row, error)
	Objects(ctx context.Context, q read.Query) (read.Page, error)
}

// authorizer decides who has access. Its errors are sent to the client unchanged.
type authorizer interface {
	CheckAccount(ctx context.Context, c authorize.Caller, account vedette.AccountName, access authorize.Access) error
	CheckApplication(ctx context.Context, c authorize.Caller, application string, access authorize.Access) error
}

// Dispatcher executes operations in clusters.
type Dispatcher interface {
	Execute(ctx context.Context, op vedette.Operation) vedette.Outcome
}

// Config has what requests are answered from.
type Config struct {
	Store      Store
	Authorizer authorizer
	// Dispatch executes operations in clusters. If nil, only the store answers.
	Dispatch Dispatcher
	// Connected reports whether an agent reports the account now.
	Connected   func(account vedette.AccountName) bool
	ReadLimiter *readlimit.Limiter
	// OmitPodStatus leaves pods out of the views of Jobs.
	OmitPodStatus bool
	Log           *slog.Logger
}

type api struct{ Config }

// Routes returns the routes.
func Routes(cfg Config) []web.Route {
	a := &api{cfg}
	return []web.Route{
		web.Handle("manifests/{account}/{name}", a.getManifest),
		web.Handle("manifests/{account}/{location}/{name}", a.getManifest),
		web.Handle("manifests/{account}/{location}/{kind}/cluster/{app}/{cluster}", a.listCluster),
		web.Handle("manifests/{account}/{location}/{kind}/cluster/{app}/{cluster}/dynamic/{criteria}", a.getDynamicManifest),
		web.Handle("applications/{app}/jobs/{account}/{location}/{id}", a.getJob),
		web.Handle("POST applications/{app}/jobs/{account}/{location}/{id}", a.getJob), // used by Gate
		web.Handle("DELETE applications/{app}/jobs/{account}/{location}/{id}", a.cancelJob),
		web.Handle("applications/{app}/jobs/{account}/{location}/{id}/{container}", a.getJobProperties),
		web.Handle("applications/{app}/kubernetes/pods/{account}/{location}/{pod}/{container}", a.getPodProperties),
		web.Handle("instances/{account}/{location}/{id}/console", a.getConsole),
	}
}

func (a *api) account(ctx context.Context, name vedette.AccountName) (registry.Account, error) {
	row, err := a.Store.Account(ctx, name)
	return row, web.AccountNotFound(err, name)
}
