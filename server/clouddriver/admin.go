package clouddriver

import (
	"net/http"
	"regexp"
	"strconv"

	"github.com/vedette-io/vedette"
)

// cleanTablesView lists the tables that a request has emptied or dropped.
type cleanTablesView struct {
	TableCount int      `json:"tableCount"`
	Tables     []string `json:"tables"`
}

var tableNamespace = regexp.MustCompile(`^\w{1,255}$`)

// cleanTables mirrors CatsSqlAdminController.truncateTables and dropTables. Clouddriver keeps one
// set of tables for each namespace and version of its cache. This server has one set, which is in
// use, so there is never anything to remove.
func cleanTables(w http.ResponseWriter, r *http.Request, p pathParams) error {
	if !tableNamespace.MatchString(p["namespace"]) {
		return vedette.Errorf(vedette.Invalid, "tableNamespace can only contain characters [a-z, A-Z, 0-9, _]")
	}
	return writeJSON(w, r, cleanTablesView{Tables: []string{}})
}

// dropTablesByVersion mirrors CatsSqlAdminController.dropTablesByVersion.
func dropTablesByVersion(w http.ResponseWriter, r *http.Request, p pathParams) error {
	if version, err := strconv.Atoi(p["version"]); err != nil || version < 1 {
		return vedette.Errorf(vedette.Invalid, "Invalid CATS SQL version.")
	}
	return writeJSON(w, r, cleanTablesView{Tables: []string{}})
}
