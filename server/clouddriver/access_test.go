package clouddriver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
)

// grants are the permissions of the user "dev", for example "prod READ" or "application web
// READ". Other users have none.
type grants []string

func (g grants) CheckAccount(_ context.Context, c authorize.Caller, account vedette.AccountName, access authorize.Access) error {
	return g.check(c, string(account)+" "+string(access))
}

func (g grants) CheckApplication(_ context.Context, c authorize.Caller, application string, access authorize.Access) error {
	return g.check(c, "application "+application+" "+string(access))
}

func (g grants) Readable(_ context.Context, c authorize.Caller) (func(vedette.AccountName) bool, error) {
	return func(account vedette.AccountName) bool { return g.check(c, string(account)+" READ") == nil }, nil
}

func (g grants) ReadableApplications(_ context.Context, c authorize.Caller) (func(string) bool, error) {
	return func(application string) bool { return g.check(c, "application "+application+" READ") == nil }, nil
}

func (g grants) check(c authorize.Caller, permission string) error {
	for _, granted := range g {
		if c.User == "dev" && granted == permission {
			return nil
		}
	}
	return vedette.Errorf(vedette.Denied, "Access is denied")
}

func TestManifestsNeedAccountAndApplication(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", "pods")
	w.Put("prod", readtest.Pod("shop", "web-0", "web"))
	for _, tt := range []struct {
		name, user, path string
		grants           grants
		status           int
	}{
		{"account and application", "dev", "/manifests/prod/shop/pod%20web-0", grants{"prod READ", "application web READ"}, 200},
		{"without the user", "", "/manifests/prod/shop/pod%20web-0", grants{"prod READ", "application web READ"}, 403},
		{"without the application", "dev", "/manifests/prod/shop/pod%20web-0", grants{"prod READ"}, 403},
		{"without the account", "dev", "/manifests/prod/shop/pod%20web-0", grants{"application web READ"}, 403},
		{"WRITE does not imply READ", "dev", "/manifests/prod/shop/pod%20web-0", grants{"prod WRITE", "application web READ"}, 403},
		{"a missing object has no application to check", "dev", "/manifests/prod/shop/pod%20nope", grants{"prod READ"}, 404},
		{"without READ a missing object is not revealed", "dev", "/manifests/prod/shop/pod%20nope", grants{"other READ"}, 403},
		{"everyone may list credentials", "", "/credentials", nil, 200},
		{"everyone may read credentials", "", "/credentials/prod", nil, 200},
		{"using credentials requires WRITE", "dev", "/credentials/prod/authorized", grants{"prod WRITE"}, 200},
		{"READ is not enough to use credentials", "dev", "/credentials/prod/authorized?expand=true", grants{"prod READ"}, 403},
		{"authorized credentials of an unknown account", "dev", "/credentials/nope/authorized", grants{"nope WRITE"}, 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			response, body := get(t, serve(t, clouddriver.Config{Store: w.Store, Authorizer: tt.grants})+tt.path, "X-SPINNAKER-USER", tt.user)
			if response.StatusCode != tt.status {
				t.Fatalf("got %d %s, want %d", response.StatusCode, body, tt.status)
			}
			var failure struct{ Message, Exception string }
			if err := json.Unmarshal(body, &failure); tt.status == http.StatusForbidden && (err != nil || failure.Message != "Access is denied" || !strings.HasSuffix(failure.Exception, "AccessDeniedException")) {
				t.Errorf("got %s, want an AccessDeniedException", body)
			}
		})
	}
}

// TestNoWorkBeforePermission asks for objects of a kind that is not cached, which only the cluster can list.
// Without READ it must not be asked.
func TestNoWorkBeforePermission(t *testing.T) {
	w, c := prodWorld(t)
	url := serve(t, clouddriver.Config{Store: w.Store, Dispatch: c, Authorizer: grants{"other READ"}})
	for _, path := range []string{"/manifests/prod/default/configmap/cluster/web/web", "/manifests/prod/default/configmap/cluster/web/web/dynamic/newest",
		"/manifests/prod/default/configmap/cluster/web/web/dynamic/unknown", "/manifests/prod/default/configmap%20web", "/manifests/prod/configmap%20web",
		"/applications/web/jobs/prod/default/job%20web", "/applications/web/jobs/prod/default/job%20web/main",
		"/applications/web/kubernetes/pods/prod/default/web/main", "/instances/prod/default/pod%20web/console", "/instances/prod/default/pod%20web"} {
		if response, body := get(t, url+path, "X-SPINNAKER-USER", "dev"); response.StatusCode != http.StatusForbidden {
			t.Errorf("%s: got %d %s, want 403", path, response.StatusCode, body)
		}
	}
	if requests := c.requests(); len(requests) > 0 {
		t.Errorf("the cluster was asked %q, want nothing", requests)
	}
}
