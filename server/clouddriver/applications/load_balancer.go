package applications

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/infrastructure"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/rest"
	"github.com/vedette-io/vedette/server/store/read"
)

// listLoadBalancers mirrors LoadBalancerController.list, which sorts by name.
func (a *api) listLoadBalancers(w http.ResponseWriter, r *http.Request, p web.Params) error {
	v, err := a.readView(r, p["app"])
	if err != nil {
		return err
	}
	balancers, err := v.Balancers(r.Context())
	if err != nil {
		return err
	}
	return a.writeView(w, r, v, v.key("loadBalancers"), func(e *encoder) {
		e.Array(func() {
			for _, b := range sortedByName(balancers) {
				if v.shows(b.Account) {
					e.loadBalancer(b)
				}
			}
		})
	})
}

func sortedByName(balancers []*infrastructure.LoadBalancer) []*infrastructure.LoadBalancer {
	sorted := slices.Clone(balancers)
	slices.SortStableFunc(sorted, func(x, y *infrastructure.LoadBalancer) int {
		return cmp.Or(strings.Compare(manifest.KindName(x.Kind), manifest.KindName(y.Kind)),
			strings.Compare(strings.ToLower(x.Name), strings.ToLower(y.Name)))
	})
	return sorted
}

// checkLoadBalancerProvider rejects other providers than Kubernetes.
func checkLoadBalancerProvider(p web.Params) error {
	if p["provider"] != "kubernetes" {
		return &web.Error{Status: http.StatusBadRequest, Exception: "com.netflix.spinnaker.clouddriver.exceptions.CloudProviderNotFoundException",
			Message: "No cloud provider named " + p["provider"] + " found"}
	}
	return nil
}

// listAllLoadBalancers mirrors LoadBalancerController.listForCloudProvider, which lists none for
// Kubernetes.
func (a *api) listAllLoadBalancers(w http.ResponseWriter, r *http.Request, p web.Params) error {
	if err := checkLoadBalancerProvider(p); err != nil {
		return err
	}
	return rest.WriteJSON(w, r, []string{})
}

// getLoadBalancer mirrors LoadBalancerController.getByAccountRegionName: a list of one, or an
// empty one.
func (a *api) getLoadBalancer(w http.ResponseWriter, r *http.Request, p web.Params) error {
	if err := checkLoadBalancerProvider(p); err != nil {
		return err
	}
	account := vedette.AccountName(p["account"])
	if err := a.Authorizer.CheckAccount(r.Context(), authorize.CallerOf(r), account, authorize.Read); err != nil {
		return err
	}
	b, err := a.findLoadBalancer(r, account, p["region"], p["name"])
	if err != nil {
		return err
	}
	var e encoder
	e.Array(func() {
		if b != nil {
			e.loadBalancer(b)
		}
	})
	return a.writeEncoded(w, r, e.B)
}

// findLoadBalancer returns a load balancer by its full name, or nil. Its relations are those of its
// application, which is usually in memory.
func (a *api) findLoadBalancer(r *http.Request, account vedette.AccountName, namespace, fullName string) (
	*infrastructure.LoadBalancer, error) {
	key, ok := keyOf(infrastructure.LoadBalancerKinds, namespace, fullName)
	if !ok {
		return nil, nil
	}
	o, err := a.Views.Object(r.Context(), account, key)
	if o == nil || err != nil {
		return nil, err
	}
	application, err := a.Views.Application(r.Context(), o.Moniker.App)
	if err != nil {
		return nil, err
	}
	balancers, err := application.Balancers(r.Context())
	if err != nil {
		return nil, err
	}
	for _, b := range balancers {
		if b.Account == account && b.Key == key {
			return b, nil
		}
	}
	return &infrastructure.LoadBalancer{Object: o}, nil
}

// keyOf returns the key of a full name like "service web", if it is of one of the kinds.
func keyOf(kinds []vedette.Kind, namespace, fullName string) (key vedette.Key, ok bool) {
	kind, name, err := manifest.SplitName(fullName)
	if err != nil {
		return key, false
	}
	found, ok := infrastructure.FindKind(kind)
	if !ok || !slices.Contains(kinds, found) {
		return key, false
	}
	return vedette.Key{Kind: found, Namespace: namespace, Name: name}, true
}

// loadBalancerItem is a load balancer's name, with the accounts and namespaces that have one.
type loadBalancerItem struct {
	Name     string                 `json:"name"`
	Accounts []*loadBalancerAccount `json:"accounts"`
}

type loadBalancerAccount struct {
	Name    vedette.AccountName   `json:"name"`
	Regions []*loadBalancerRegion `json:"regions"`
}

type loadBalancerRegion struct {
	Name          string             `json:"name"`
	LoadBalancers []loadBalancerName `json:"loadBalancers"`
}

type loadBalancerName struct {
	Account vedette.AccountName `json:"account"`
	Region  string              `json:"region"`
	Name    string              `json:"name"`
	Type    string              `json:"type"`
}

// getLoadBalancerByName mirrors LoadBalancerController.get. Clouddriver does not implement it for
// Kubernetes. The answer has the form that other providers have.
func (a *api) getLoadBalancerByName(w http.ResponseWriter, r *http.Request, p web.Params) error {
	if err := checkLoadBalancerProvider(p); err != nil {
		return err
	}
	var rows []read.SearchRow
	if key, ok := keyOf(infrastructure.LoadBalancerKinds, "", p["name"]); ok {
		found, release, err := a.findObjects(r, read.SearchQuery{KindName: onlyKinds(key.Kind), Name: key.Name})
		if err != nil {
			return err
		}
		defer release()
		rows = found
	}
	if len(rows) == 0 {
		return a.hideAbsence(r, vedette.Errorf(vedette.NotFound, "Load balancer '%s' does not exist", p["name"]))
	}
	return rest.WriteJSON(w, r, newLoadBalancerItem(p["name"], rows))
}

// hideAbsence returns absent, but denies access to a caller who may not read all accounts: whether
// something exists in the others is not revealed.
func (a *api) hideAbsence(r *http.Request, absent error) error {
	readable, err := a.Authorizer.Readable(r.Context(), authorize.CallerOf(r))
	switch {
	case err != nil:
		return err
	case readable != nil:
		return vedette.Errorf(vedette.Denied, "Access is denied")
	}
	return absent
}

// newLoadBalancerItem groups rows, which are sorted by account and namespace.
func newLoadBalancerItem(name string, rows []read.SearchRow) loadBalancerItem {
	item := loadBalancerItem{Name: name}
	for _, row := range rows {
		if n := len(item.Accounts); n == 0 || item.Accounts[n-1].Name != row.Account {
			item.Accounts = append(item.Accounts, &loadBalancerAccount{Name: row.Account})
		}
		account := item.Accounts[len(item.Accounts)-1]
		account.Regions = append(account.Regions, &loadBalancerRegion{row.Namespace, []loadBalancerName{{row.Account, row.Namespace, name,
			"kubernetes"}}})
	}
	return item
}
