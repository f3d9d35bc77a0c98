package applications

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/infrastructure"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/store/read"
)

// listServerGroups mirrors ServerGroupController.list.
func (a *api) listServerGroups(w http.ResponseWriter, r *http.Request, p web.Params) error {
	v, err := a.readView(r, p["app"])
	if err != nil {
		return err
	}
	query := r.URL.Query()
	expand, provider := web.TextParam(query, "expand"), web.SingleParam(query, "cloudProvider")
	clusters, subset := web.ListParam(r, "clusters")
	if !subset && provider != "" && !strings.EqualFold(provider, cloudProvider) {
		return a.writeEncoded(w, r, []byte("[]"))
	}
	key := v.key("serverGroups", append([]string{strconv.FormatBool(expand), strconv.FormatBool(subset)}, clusters...)...)
	return a.writeView(w, r, v, key, func(e *encoder) {
		groups := v.serverGroups()
		if subset {
			groups = v.serverGroupsOf(clusters)
		}
		e.Grow(sizeOf(groups, expand))
		e.Array(func() {
			for _, g := range groups {
				if expand {
					e.expandedServerGroup(g)
				} else {
					e.serverGroupSummary(g)
				}
			}
		})
	})
}

// sizeOf estimates the size of a list of server groups.
func sizeOf(groups []*infrastructure.ServerGroup, expand bool) int {
	perGroup, perInstance := 900, 350
	if expand {
		perGroup, perInstance = 1200, 850
	}
	size := 0
	for _, g := range groups {
		size += perGroup + perInstance*len(g.Instances)
	}
	return size
}

// serverGroups returns the server groups that a caller sees. Those whose name gives no cluster
// are in no list of Clouddriver.
func (v view) serverGroups() []*infrastructure.ServerGroup {
	var list []*infrastructure.ServerGroup
	for _, g := range v.ServerGroups {
		if g.Moniker.Cluster != "" && v.shows(g.Account) {
			list = append(list, g)
		}
	}
	return list
}

// serverGroupsOf returns the server groups of clusters that are given as "account:cluster". Other
// texts are skipped, and so is a cluster that is given again.
func (v view) serverGroupsOf(clusters []string) []*infrastructure.ServerGroup {
	var list []*infrastructure.ServerGroup
	seen := map[*infrastructure.Cluster]bool{}
	for _, text := range clusters {
		account, name, ok := strings.Cut(strings.TrimRight(text, ":"), ":")
		if !ok || account == "" || strings.Contains(name, ":") || !v.shows(vedette.AccountName(account)) {
			continue
		}
		if c := v.Cluster(vedette.AccountName(account), name); c != nil && !seen[c] {
			seen[c] = true
			list = append(list, c.ServerGroups...)
		}
	}
	return list
}

// getServerGroup mirrors ServerGroupController.getServerGroupByApplication and
// getServerGroupByMoniker. The application in the path is not used: the one that the server
// group belongs to is checked.
func (a *api) getServerGroup(w http.ResponseWriter, r *http.Request, p web.Params) error {
	scope := web.NewScope(r, p)
	if err := a.Authorizer.CheckAccount(r.Context(), scope.Caller, scope.Account, authorize.Read); err != nil {
		return err
	}
	g, err := a.findServerGroup(r, scope.Account, p["region"], p["name"])
	if err != nil {
		return err
	}
	if err := a.Authorizer.CheckApplication(r.Context(), scope.Caller, g.Moniker.App, authorize.Read); err != nil {
		return err
	}
	var e encoder
	e.serverGroupDetail(g)
	return a.writeEncoded(w, r, e.B)
}

func (a *api) findServerGroup(r *http.Request, account vedette.AccountName, region, name string) (*infrastructure.ServerGroup, error) {
	notFound := vedette.Errorf(vedette.NotFound, "Server group not found (account: %s, region: %s, name: %.300s)", account, region, name)
	ref, ok := serverGroupRef(account, region, name)
	if !ok {
		return nil, notFound
	}
	g, err := a.Views.ServerGroup(r.Context(), ref.Account, ref.Key)
	if err == nil && g == nil {
		err = a.confirmAbsence(r, []vedette.AccountName{account}, notFound)
	}
	return g, err
}

// serverGroupRef returns the object that a full name means. It returns false if no view has its kind.
func serverGroupRef(account vedette.AccountName, region, name string) (read.ObjectRef, bool) {
	kind, object, err := manifest.SplitName(name)
	if err != nil {
		return read.ObjectRef{}, false
	}
	found, ok := infrastructure.FindKind(kind)
	return read.ObjectRef{Account: account, Key: vedette.Key{Kind: found, Namespace: region, Name: object}}, ok
}

// listManagers mirrors ServerGroupManagerController.getForApplication.
func (a *api) listManagers(w http.ResponseWriter, r *http.Request, p web.Params) error {
	v, err := a.readView(r, p["app"])
	if err != nil {
		return err
	}
	return a.writeView(w, r, v, v.key("serverGroupManagers"), func(e *encoder) {
		e.Array(func() {
			for _, m := range v.Managers {
				if v.shows(m.Account) {
					e.manager(m)
				}
			}
		})
	})
}

// getInstance mirrors InstanceController.getInstance.
func (a *api) getInstance(w http.ResponseWriter, r *http.Request, p web.Params) error {
	scope := web.NewScope(r, p)
	if err := a.Authorizer.CheckAccount(r.Context(), scope.Caller, scope.Account, authorize.Read); err != nil {
		return err
	}
	notFound := vedette.Errorf(vedette.NotFound, "Instance not found (id: %.300s)", p["id"])
	kind, name, err := manifest.SplitName(p["id"])
	if err != nil {
		return notFound
	}
	if found, _ := infrastructure.FindKind(kind); found != infrastructure.InstanceKinds[0] {
		return notFound
	}
	i, err := a.Views.Instance(r.Context(), scope.Account, p["location"], name)
	if err != nil {
		return err
	}
	if i.Object == nil {
		return a.confirmAbsence(r, []vedette.AccountName{scope.Account}, notFound)
	}
	var e encoder
	e.instanceDetail(i)
	return a.writeEncoded(w, r, e.B)
}
