package clouddriver_test

import (
	"net/http"
	"strings"

	"github.com/vedette-io/vedette/server/authorize/authorizetest"
	"github.com/vedette-io/vedette/server/clouddriver"
)

// infrastructureRoutes are the entries of views of load balancers, security groups and more.
func infrastructureRoutes() map[string]authorizetest.Route {
	account, both := []string{"prod READ"}, []string{"application web READ", "prod READ"}
	return map[string]authorizetest.Route{
		"GET applications/{app}/loadBalancers": {Path: "/applications/web/loadBalancers", Permissions: both, FilteredText: "service web",
			Rejecting: []string{"application web READ"}},
		"GET applications/{app}/rawResources": {Path: "/applications/web/rawResources", Permissions: both, FilteredText: "service web",
			Rejecting: []string{"application web READ"}},
		// It never lists any.
		"GET {provider}/loadBalancers":                            {Path: "/kubernetes/loadBalancers", Open: true},
		"GET {provider}/loadBalancers/{name}":                     {Path: "/kubernetes/loadBalancers/service%20web", Permissions: account},
		"GET {provider}/loadBalancers/{account}/{region}/{name}":  {Path: "/kubernetes/loadBalancers/prod/shop/service%20web", Permissions: account},
		"GET securityGroups":                                      {Path: "/securityGroups", Permissions: account, FilteredText: "networkPolicy web"},
		"GET securityGroups/{account}":                            {Path: "/securityGroups/prod", Permissions: account},
		"GET securityGroups/{account}/{provider}":                 {Path: "/securityGroups/prod/kubernetes", Permissions: account},
		"GET securityGroups/{account}/{provider}/{name}":          {Path: "/securityGroups/prod/kubernetes/networkPolicy%20web", Permissions: account},
		"GET securityGroups/{account}/{provider}/{region}/{name}": {Path: "/securityGroups/prod/kubernetes/shop/networkPolicy%20web", Permissions: account},
		"GET search": {Path: "/search?q=web&type=loadBalancers", Permissions: both, FilteredText: "service web"},
	}
}

// fixedRoutes are the entries of routes that answer everyone the same.
func fixedRoutes() map[string]authorizetest.Route {
	all := map[string]authorizetest.Route{
		// No account can be managed.
		"GET credentials/type/{type}":          {Path: "/credentials/type/kubernetes", Code: http.StatusBadRequest, Open: true},
		"POST credentials":                     {Path: "/credentials", Code: http.StatusBadRequest, Open: true},
		"PUT credentials":                      {Path: "/credentials", Code: http.StatusBadRequest, Open: true},
		"PUT credentials/{account}":            {Path: "/credentials/prod", Code: http.StatusBadRequest, Open: true},
		"DELETE credentials/{account}":         {Path: "/credentials/prod", Code: http.StatusBadRequest, Open: true},
		"GET credentials/{account}/history":    {Path: "/credentials/prod/history", Code: http.StatusBadRequest, Open: true},
		"GET servicebroker/{account}/services": {Path: "/servicebroker/prod/services?cloudProvider=aws", Open: true},
		// It shows no more than the list of accounts, which is open too.
		"GET cache/introspection": {Path: "/cache/introspection", Open: true},
		// There is nothing that they could remove.
		"PUT admin/db/truncate/{namespace}":   {Path: "/admin/db/truncate/green", Open: true},
		"PUT admin/db/drop/{namespace}":       {Path: "/admin/db/drop/green", Open: true},
		"PUT admin/db/drop_version/{version}": {Path: "/admin/db/drop_version/1", Open: true},
	}
	unbraced := strings.NewReplacer("{", "", "}", "")
	for pattern, status := range clouddriver.OtherProviderAnswers() {
		all["GET "+pattern] = authorizetest.Route{Path: "/" + unbraced.Replace(pattern), Code: status, Open: true}
	}
	return all
}
