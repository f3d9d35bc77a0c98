package applications

import (
	"net/http"
	"strconv"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/infrastructure"
)

// listAccountClusters mirrors ClusterController.getForAccount.
func (a *api) listAccountClusters(w http.ResponseWriter, r *http.Request, p web.Params) error {
	v, err := a.readAccountView(r, p)
	if err != nil {
		return err
	}
	account := vedette.AccountName(p["account"])
	clusters := v.ClustersOf(account)
	if len(clusters) == 0 {
		return a.confirmAbsence(r, []vedette.AccountName{account},
			vedette.Errorf(vedette.NotFound, "No clusters found (application: %s, account: %s)", p["app"], account))
	}
	return a.writeView(w, r, v, v.key("clusters", p["account"]), func(e *encoder) {
		e.Array(func() {
			for _, c := range clusters {
				e.clusterSummary(c)
			}
		})
	})
}

// getCluster mirrors ClusterController.getForAccountAndName, which answers with a list.
func (a *api) getCluster(w http.ResponseWriter, r *http.Request, p web.Params) error {
	v, c, err := a.findCluster(r, p)
	if err != nil {
		return err
	}
	expand, err := web.BooleanParam(r.URL.Query(), "expand")
	if err != nil {
		return err
	}
	if c == nil {
		return a.confirmAbsence(r, []vedette.AccountName{vedette.AccountName(p["account"])}, vedette.Errorf(vedette.NotFound,
			"Cluster not found (application: %s, account: %s, name: %s)", p["app"], p["account"], p["cluster"]))
	}
	return a.writeView(w, r, v, v.key("cluster", p["account"], p["cluster"], strconv.FormatBool(expand)), func(e *encoder) {
		e.Array(func() { e.cluster(c, expand) })
	})
}

// getTypedCluster mirrors ClusterController.getForAccountAndNameAndType. Orca counts the server
// groups of its answer before a deployment.
func (a *api) getTypedCluster(w http.ResponseWriter, r *http.Request, p web.Params) error {
	v, c, expand, err := a.findTypedCluster(r, p)
	if err != nil {
		return err
	}
	return a.writeView(w, r, v, v.key("typed cluster", p["account"], p["cluster"], strconv.FormatBool(expand)), func(e *encoder) {
		e.cluster(c, expand)
	})
}

// findCluster returns a cluster of an account, or nil if there is none.
func (a *api) findCluster(r *http.Request, p web.Params) (view, *infrastructure.Cluster, error) {
	v, err := a.readAccountView(r, p)
	if err != nil {
		return view{}, nil, err
	}
	return v, v.Cluster(vedette.AccountName(p["account"]), p["cluster"]), nil
}

// findTypedCluster is findCluster for a path with a cloud provider, with Clouddriver's errors.
func (a *api) findTypedCluster(r *http.Request, p web.Params) (v view, c *infrastructure.Cluster, expand bool, err error) {
	v, c, err = a.findCluster(r, p)
	if err != nil {
		return view{}, nil, false, err
	}
	if p["type"] != cloudProvider {
		return view{}, nil, false, vedette.Errorf(vedette.NotFound,
			"No cluster provider of type: %s found that can handle cluster: %s in application: %s, account: %s", p["type"], p["cluster"], p["app"],
			p["account"])
	}
	if expand, err = web.BooleanParam(r.URL.Query(), "expand"); err != nil {
		return view{}, nil, false, err
	}
	if c == nil {
		return view{}, nil, false, a.confirmAbsence(r, []vedette.AccountName{vedette.AccountName(p["account"])},
			vedette.Errorf(vedette.NotFound, "No clusters found (application: %s, account: %s, type: %s)", p["app"], p["account"], p["type"]))
	}
	return v, c, expand, nil
}

// cloudProvider is the name of the only provider of this server.
const cloudProvider = "kubernetes"

// listClusterServerGroups mirrors ClusterController.getServerGroups.
func (a *api) listClusterServerGroups(w http.ResponseWriter, r *http.Request, p web.Params) error {
	v, c, expand, err := a.findTypedCluster(r, p)
	if err != nil {
		return err
	}
	region := web.SingleParam(r.URL.Query(), "region")
	key := v.key("cluster's server groups", p["account"], p["cluster"], region, strconv.FormatBool(expand))
	return a.writeView(w, r, v, key, func(e *encoder) {
		e.Array(func() {
			for _, g := range c.ServerGroups {
				if expand && (region == "" || g.Namespace == region) {
					e.serverGroupDetail(g)
				}
			}
		})
	})
}

// getClusterServerGroup mirrors ClusterController.getServerGroup: with a region it answers with
// one server group, otherwise with a list. Clouddriver finds none for Kubernetes, because it
// searches a cluster that it has loaded without them; this server does not copy that.
func (a *api) getClusterServerGroup(w http.ResponseWriter, r *http.Request, p web.Params) error {
	region, name := web.SingleParam(r.URL.Query(), "region"), p["name"]
	notFound := vedette.Errorf(vedette.NotFound, "Server group not found (account: %s, name: %s, type: %s)", p["account"], name, p["type"])
	if p["type"] != cloudProvider {
		if _, err := a.readAccountView(r, p); err != nil {
			return err
		}
		return notFound
	}
	_, c, _, err := a.findTypedCluster(r, p)
	if err != nil {
		return err
	}
	var matches []*infrastructure.ServerGroup
	for _, g := range c.ServerGroups {
		if infrastructure.FullName(g.Object) == name && (region == "" || g.Namespace == region) {
			matches = append(matches, g)
		}
	}
	if len(matches) == 0 {
		return a.confirmAbsence(r, []vedette.AccountName{vedette.AccountName(p["account"])}, notFound)
	}
	var e encoder
	if region != "" {
		e.serverGroupDetail(matches[0])
		return a.writeEncoded(w, r, e.B)
	}
	e.Array(func() {
		for _, g := range matches {
			e.serverGroupDetail(g)
		}
	})
	return a.writeEncoded(w, r, e.B)
}
