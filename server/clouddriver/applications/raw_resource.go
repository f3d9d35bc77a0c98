package applications

import (
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/infrastructure"
	"github.com/vedette-io/vedette/server/manifest"
)

// listRawResources mirrors RawResourceController.list.
func (a *api) listRawResources(w http.ResponseWriter, r *http.Request, p web.Params) error {
	v, err := a.readView(r, p["app"])
	if err != nil {
		return err
	}
	settings, err := a.Views.Settings(r.Context())
	if err != nil {
		return err
	}
	others, err := a.readOthers(r, p["app"], settings)
	if err != nil {
		return err
	}
	filterOf := func(account vedette.AccountName) *rawResourceFilter {
		return a.rawResources.of(account, settings.Properties(account))
	}
	shows := func(o *infrastructure.Object) bool { return filterOf(o.Account).shows(o.Kind) }
	encode := func(e *encoder) {
		e.Array(func() {
			for _, o := range slices.Concat(v.relatedObjects(), others) {
				if shows(o) {
					e.rawResource(o)
				}
			}
		})
	}
	if len(others) == 0 {
		var filters []string // an application stays the same if they change
		for _, account := range v.Accounts() {
			filters = append(filters, filterOf(account).source)
		}
		return a.writeView(w, r, v, v.key("rawResources", filters...), encode)
	}
	var e encoder
	encode(&e)
	return a.writeEncoded(w, r, e.B)
}

// relatedObjects are the objects that belong to the application in all accounts, in those accounts
// that the caller sees.
func (v view) relatedObjects() []*infrastructure.Object {
	var objects []*infrastructure.Object
	for _, g := range v.ServerGroups {
		objects = append(objects, g.Object)
	}
	for _, m := range v.Managers {
		objects = append(objects, m.Object)
	}
	objects = append(objects, v.LoadBalancers...)
	objects = append(objects, v.SecurityGroups...)
	return slices.DeleteFunc(objects, func(o *infrastructure.Object) bool { return !v.shows(o.Account) })
}

// readOthers reads the objects of other kinds in accounts with cacheAllApplicationRelationships that
// the caller may read. If there is no such account, it reads nothing.
func (a *api) readOthers(r *http.Request, application string, settings *infrastructure.Settings) ([]*infrastructure.Object, error) {
	readable, err := a.Authorizer.Readable(r.Context(), authorize.CallerOf(r))
	if err != nil {
		return nil, err
	}
	if len(settings.RelatesAll) == 0 {
		return nil, nil
	}
	all, err := a.Views.Objects(r.Context(), application)
	var objects []*infrastructure.Object
	for i := range all {
		o := &all[i]
		isOther := settings.RelatesAll[o.Account] && !slices.Contains(infrastructure.LogicalKinds, o.Kind)
		if isOther && settings.Shows(o) && (readable == nil || readable(o.Account)) {
			objects = append(objects, o)
		}
	}
	return objects, err
}

// rawResource appends an object like Clouddriver's KubernetesRawResource.
func (e *encoder) rawResource(o *infrastructure.Object) {
	e.Object(func() {
		e.Text("account", string(o.Account))
		e.Text("name", infrastructure.FullName(o))
		e.Text("namespace", o.Namespace)
		e.Text("region", o.Namespace)
		e.Text("displayName", o.Name)
		e.Text("apiVersion", o.APIVersion)
		e.Text("kind", manifest.KindName(o.Kind))
		e.TextMap("labels", o.Labels)
		e.moniker(o.Moniker)
		e.createdTime(o)
	})
}
