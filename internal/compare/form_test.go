package compare_test

import (
	"testing"

	"github.com/vedette-io/vedette/internal/compare"
)

func TestFormReplacesNamesInPaths(t *testing.T) {
	for path, want := range map[string]string{
		"/credentials":                      "/credentials",
		"/credentials?expand=true":          "/credentials?expand",
		"/credentials/type/kubernetes":      "/credentials/type/TYPE",
		"/credentials/prod":                 "/credentials/ACCOUNT",
		"/applications/shop/clusters/prod":  "/applications/APP/clusters/ACCOUNT",
		"/kubernetes/loadBalancers/x":       "/kubernetes/loadBalancers/NAME",
		"/aws/loadBalancers":                "/PROVIDER/loadBalancers",
		"/search?type=pod&q=web&pageSize=5": "/search?pageSize&type",
		"/search?q=%zz":                     "/search?…",
		"/applications/shop/clusters/prod/deployment%20web/kubernetes":                                 "/applications/APP/clusters/ACCOUNT/CLUSTER/kubernetes",
		"/applications/shop/clusters/prod/deployment%20web/aws":                                        "/applications/APP/clusters/ACCOUNT/CLUSTER/PROVIDER",
		"/applications/shop/clusters/prod/deployment%20web/kubernetes/shop/serverGroups/target/NEWEST": "/applications/APP/clusters/ACCOUNT/CLUSTER/PROVIDER/LOCATION/serverGroups/target/TARGET",
		"/manifests/prod//node%20n": "/manifests/ACCOUNT/LOCATION/NAME",
		"/unknown":                  "/unknown",
		"/unknown/a/b":              "/unknown/…/…",
		"":                          "/",
	} {
		if got := compare.Form(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
