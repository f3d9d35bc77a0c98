package clouddriver

import (
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/infrastructure"
	"github.com/vedette-io/vedette/server/store"
)

// listApplications mirrors ApplicationsController.list. As in Clouddriver's Kubernetes provider,
// expand makes no difference.
func (a *api) listApplications(w http.ResponseWriter, r *http.Request, _ pathParams) error {
	query := r.URL.Query()
	if _, err := booleanParam(query, "expand"); err != nil {
		return err
	}
	restricted, err := booleanParam(query, "restricted")
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
	list, err := a.applications.get(inventory, settings)
	if err != nil {
		return err
	}
	if readable != nil {
		return a.writeEncoded(w, r, list.filter(readable))
	}
	release, err := a.ReadLimiter.Acquire(r.Context(), newRequestScope(r, nil).limitKey, list.answer.Bytes())
	if err != nil {
		return err
	}
	defer release()
	writeAnswer(w, r, list.answer)
	return nil
}

func (a *api) readInventory(r *http.Request) (*store.Inventory, *infrastructure.Settings, error) {
	settings, err := a.views.Settings(r.Context())
	if err != nil {
		return nil, nil, err
	}
	inventory, err := a.Store.Inventory(r.Context())
	return inventory, settings, err
}

// getApplication mirrors ApplicationsController.get. The lists of each cluster are empty, like
// those of Clouddriver's Kubernetes provider.
func (a *api) getApplication(w http.ResponseWriter, r *http.Request, p pathParams) error {
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
	e.object(func() {
		e.text("name", name)
		e.name("attributes")
		e.object(func() {
			e.text("name", name)
			e.raw("cloudProviders", `"kubernetes"`)
		})
		e.name("clusters")
		e.object(func() {
			for _, account := range accounts {
				e.applicationClusters(account)
			}
		})
	})
	return a.writeEncoded(w, r, e.b)
}

// readClusters returns the clusters of an application from its objects. The inventory lists only so
// many clusters of an account, and Orca deletes an application that has none.
func (a *api) readClusters(r *http.Request, name string) ([]accountClusters, error) {
	application, err := a.views.Application(r.Context(), name)
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
	e.member(string(account.name))
	e.array(func() {
		for _, name := range account.clusters {
			e.object(func() {
				e.text("name", name)
				e.raw("loadBalancers", "[]")
				e.raw("serverGroups", "[]")
				e.raw("provider", `"kubernetes"`)
			})
		}
	})
}

// listClusters mirrors ClusterController.listByAccount.
func (a *api) listClusters(w http.ResponseWriter, r *http.Request, p pathParams) error {
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
	e.object(func() {
		for _, account := range visibleClusters(inventory.Application(p["app"]), settings) {
			if readable == nil || readable(account.name) {
				e.member(string(account.name))
				e.texts(account.clusters)
			}
		}
	})
	return a.writeEncoded(w, r, e.b)
}

// accountClusters are the clusters of an application that an account shows.
type accountClusters struct {
	name     vedette.AccountName
	clusters []string
}

// visibleClusters returns the clusters of an application, which may be nil, by account. Accounts
// that show only what Spinnaker deployed have fewer.
func visibleClusters(application *store.Application, settings *infrastructure.Settings) []accountClusters {
	if application == nil || !settings.Known(application.Name) {
		return nil
	}
	var list []accountClusters
	for _, account := range application.Accounts {
		var names []string
		for _, c := range account.Clusters {
			if c.Name != "" && (c.Managed > 0 || c.Objects > 0 && !settings.OnlyManaged[account.Account]) {
				names = append(names, c.Name)
			}
		}
		if len(names) > 0 {
			list = append(list, accountClusters{account.Account, names})
		}
	}
	return list
}
