package applications

import (
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/infrastructure"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store/read"
)

// listApplications mirrors ApplicationsController.list. As in Clouddriver's Kubernetes provider,
// expand makes no difference.
func (a *api) listApplications(w http.ResponseWriter, r *http.Request, _ web.Params) error {
	query := r.URL.Query()
	if _, err := web.BooleanParam(query, "expand"); err != nil {
		return err
	}
	restricted, err := web.BooleanParam(query, "restricted")
	if err != nil {
		return err
	}
	var readable func(application string) bool
	if restricted {
		if readable, err = a.Authorizer.ReadableApplications(r.Context(), authorize.CallerOf(r)); err != nil {
			return err
		}
	}
	inventory, settings, err := a.readInventory(r)
	if err != nil {
		return err
	}
	list, err := a.list.get(inventory, settings)
	if err != nil {
		return err
	}
	if readable != nil {
		return a.writeEncoded(w, r, list.filter(readable))
	}
	release, err := a.ReadLimiter.Acquire(r.Context(), readlimit.CallerOf(r), list.response.Bytes())
	if err != nil {
		return err
	}
	defer release()
	list.response.write(w, r)
	return nil
}

func (a *api) readInventory(r *http.Request) (*read.Inventory, *infrastructure.Settings, error) {
	settings, err := a.Views.Settings(r.Context())
	if err != nil {
		return nil, nil, err
	}
	inventory, err := a.Store.Inventory(r.Context())
	return inventory, settings, err
}

// getApplication mirrors ApplicationsController.get. The lists of each cluster are empty, like
// those of Clouddriver's Kubernetes provider.
func (a *api) getApplication(w http.ResponseWriter, r *http.Request, p web.Params) error {
	name := p["app"]
	if err := a.Authorizer.CheckApplication(r.Context(), authorize.CallerOf(r), name, authorize.Read); err != nil {
		return err
	}
	inventory, settings, err := a.readInventory(r)
	if err != nil {
		return err
	}
	accounts := visibleClusters(inventory.Application(name), settings)
	if len(accounts) == 0 {
		if accounts, err = a.readClusters(r, name); err != nil {
			return err
		}
	}
	if len(accounts) == 0 {
		return a.confirmAbsence(r, settings.Accounts(), vedette.Errorf(vedette.NotFound, "Application does not exist (name: %s)", name))
	}
	var e encoder
	e.Object(func() {
		e.Text("name", name)
		e.Name("attributes")
		e.Object(func() {
			e.Text("name", name)
			e.Raw("cloudProviders", `"kubernetes"`)
		})
		e.Name("clusters")
		e.Object(func() {
			for _, account := range accounts {
				e.applicationClusters(account)
			}
		})
	})
	return a.writeEncoded(w, r, e.B)
}

// readClusters returns the clusters of an application from its objects. The inventory lists only so
// many clusters of an account, and Orca deletes an application that has none.
func (a *api) readClusters(r *http.Request, name string) ([]accountClusters, error) {
	application, err := a.Views.Application(r.Context(), name)
	if err != nil {
		return nil, err
	}
	var list []accountClusters
	for _, c := range application.Clusters() {
		if n := len(list); n == 0 || list[n-1].name != c.Account {
			list = append(list, accountClusters{name: c.Account})
		}
		last := &list[len(list)-1]
		last.clusters = append(last.clusters, c.Name)
	}
	return list, nil
}

func (e *encoder) applicationClusters(account accountClusters) {
	e.Member(string(account.name))
	e.Array(func() {
		for _, name := range account.clusters {
			e.Object(func() {
				e.Text("name", name)
				e.Raw("loadBalancers", "[]")
				e.Raw("serverGroups", "[]")
				e.Raw("provider", `"kubernetes"`)
			})
		}
	})
}

// listClusters mirrors ClusterController.listByAccount.
func (a *api) listClusters(w http.ResponseWriter, r *http.Request, p web.Params) error {
	caller := authorize.CallerOf(r)
	if err := a.Authorizer.CheckApplication(r.Context(), caller, p["app"], authorize.Read); err != nil {
		return err
	}
	readable, err := a.Authorizer.Readable(r.Context(), caller)
	if err != nil {
		return err
	}
	inventory, settings, err := a.readInventory(r)
	if err != nil {
		return err
	}
	var e encoder
	e.Object(func() {
		for _, account := range visibleClusters(inventory.Application(p["app"]), settings) {
			if readable == nil || readable(account.name) {
				e.Member(string(account.name))
				e.Texts(account.clusters)
			}
		}
	})
	return a.writeEncoded(w, r, e.B)
}

// accountClusters are the clusters of an application that an account shows.
type accountClusters struct {
	name     vedette.AccountName
	clusters []string
}

// visibleClusters returns the clusters of an application, which may be nil, by account. Accounts
// that show only what Spinnaker deployed have fewer.
func visibleClusters(application *read.Application, settings *infrastructure.Settings) []accountClusters {
	if application == nil || !settings.Known(application.Name) {
		return nil
	}
	var list []accountClusters
	for _, account := range application.Accounts {
		var names []string
		for _, c := range account.Clusters {
			if c.Name != "" && settings.ShowsCluster(account.Account, c) {
				names = append(names, c.Name)
			}
		}
		if len(names) > 0 {
			list = append(list, accountClusters{account.Account, names})
		}
	}
	return list
}
