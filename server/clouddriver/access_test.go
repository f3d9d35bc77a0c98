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

// grants say what the user "dev" may: "prod READ", "application web READ".
// Whoever else calls may do nothing.
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

func (g grants) check(c authorize.Caller, permission string) error {
	for _, granted := range g {
		if c.User == "dev" && granted == permission {
			return nil
		}
	}
	return vedette.Errorf(vedette.Denied, "Access is denied")
}

func TestAuthorization(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", "pods")
	w.Put("prod", readtest.Pod("shop", "web-0", "web"))
	for _, tt := range []struct {
		why, user, path string
		grants          grants
		status          int
	}{
		{"account and application", "dev", "/manifests/prod/shop/pod%20web-0", grants{"prod READ", "application web READ"}, 200},
		{"without the user", "", "/manifests/prod/shop/pod%20web-0", grants{"prod READ", "application web READ"}, 403},
		{"without the application", "dev", "/manifests/prod/shop/pod%20web-0", grants{"prod READ"}, 403},
		{"without the account", "dev", "/manifests/prod/shop/pod%20web-0", grants{"application web READ"}, 403},
		{"to write is not to read", "dev", "/manifests/prod/shop/pod%20web-0", grants{"prod WRITE", "application web READ"}, 403},
		{"what is not there has no application", "dev", "/manifests/prod/shop/pod%20nope", grants{"prod READ"}, 404},
		{"who may not read learns nothing of it", "dev", "/manifests/prod/shop/pod%20nope", grants{"other READ"}, 403},
		{"credentials are listed to all", "", "/credentials", nil, 200},
		{"and shown to all", "", "/credentials/prod", nil, 200},
		{"to use them is to write", "dev", "/credentials/prod/authorized", grants{"prod WRITE"}, 200},
		{"not to read", "dev", "/credentials/prod/authorized?expand=true", grants{"prod READ"}, 403},
		{"of an account that is not there", "dev", "/credentials/nope/authorized", grants{"nope WRITE"}, 404},
	} {
		t.Run(tt.why, func(t *testing.T) {
			response, body := get(t, serve(t, clouddriver.Config{Store: w.Store, Authorizer: tt.grants})+tt.path, "X-SPINNAKER-USER", tt.user)
			if response.StatusCode != tt.status {
				t.Fatalf("%d: %s", response.StatusCode, body)
			}
			var failure struct{ Message, Exception string }
			if err := json.Unmarshal(body, &failure); tt.status == http.StatusForbidden && (err != nil || failure.Message != "Access is denied" || !strings.HasSuffix(failure.Exception, "AccessDeniedException")) {
				t.Errorf("%s", body)
			}
		})
	}
}
