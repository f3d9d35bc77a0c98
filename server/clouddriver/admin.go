package clouddriver

import (
	"net/http"
	"regexp"
	"strconv"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/rest"
)

// adminRoutes are those of controllers that look after Clouddriver itself.
func (a *api) adminRoutes() []web.Route {
	return []web.Route{
		web.Handle("health", a.health),
		web.Handle("cache/introspection", a.listCachingAgents),
		web.Handle("PUT admin/db/truncate/{namespace}", cleanTables),
		web.Handle("PUT admin/db/drop/{namespace}", cleanTables),
		web.Handle("PUT admin/db/drop_version/{version}", dropTablesByVersion),
	}
}

// cleanTablesView lists the tables that a request has emptied or dropped.
type cleanTablesView struct {
	TableCount int      `json:"tableCount"`
	Tables     []string `json:"tables"`
}

var tableNamespace = regexp.MustCompile(`^\w{1,255}$`)

// cleanTables mirrors CatsSqlAdminController.truncateTables and dropTables. Clouddriver keeps one
// set of tables for each namespace and version of its cache. This server has one set, which is in
// use, so there is never anything to remove.
func cleanTables(w http.ResponseWriter, r *http.Request, p web.Params) error {
	if !tableNamespace.MatchString(p["namespace"]) {
		return vedette.Errorf(vedette.Invalid, "tableNamespace can only contain characters [a-z, A-Z, 0-9, _]")
	}
	return rest.WriteJSON(w, r, cleanTablesView{Tables: []string{}})
}

// dropTablesByVersion mirrors CatsSqlAdminController.dropTablesByVersion.
func dropTablesByVersion(w http.ResponseWriter, r *http.Request, p web.Params) error {
	if version, err := strconv.Atoi(p["version"]); err != nil || version < 1 {
		return vedette.Errorf(vedette.Invalid, "Invalid CATS SQL version.")
	}
	return rest.WriteJSON(w, r, cleanTablesView{Tables: []string{}})
}
