package api_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/server/authorize"
)

// grants are the accounts that each user may read; "*" stands for all.
type grants struct {
	mu     sync.Mutex
	byUser map[string][]vedette.AccountName
}

func (g *grants) set(user string, accounts ...vedette.AccountName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.byUser[user] = accounts
}

func (g *grants) Readable(_ context.Context, c authorize.Caller) (func(vedette.AccountName) bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	accounts, ok := g.byUser[c.User]
	if !ok {
		return nil, vedette.Errorf(vedette.Denied, "Access is denied")
	}
	if slices.Contains(accounts, "*") {
		return nil, nil
	}
	readable := map[vedette.AccountName]bool{}
	for _, a := range accounts {
		readable[a] = true
	}
	return func(a vedette.AccountName) bool { return readable[a] }, nil
}

func (g *grants) CheckAccount(ctx context.Context, c authorize.Caller, account vedette.AccountName, access authorize.Access) error {
	canRead, err := g.Readable(ctx, c)
	if err == nil && (access != authorize.Read || !canRead(account)) {
		err = vedette.Errorf(vedette.Denied, "Access is denied")
	}
	return err
}

func TestObjectsAreFilteredByPermission(t *testing.T) {
	cfg := configOf(shopWorld(t))
	cfg.Authorizer = &grants{byUser: map[string][]vedette.AccountName{"dev": {"dev", "prod-3"}, "new": nil}}
	w := serve(t, cfg)
	for _, tt := range []struct {
		name, user, path string
		status           int
		want             string
	}{
		{"all accounts with permission", "dev", "/objects?kind=pods&name=web-0", 200, `"total":2`},
		{"accounts with permission among those that match", "dev", "/objects?kind=pods&name=web-0&account=prod-*", 200, `"total":1`},
		{"a table as well", "dev", "/objects?kind=pods&name=web-0&as=table", 200, `"total":2`},
		{"no permissions", "new", "/objects", 200, `"total":0`},
		{"an account named without permission", "dev", "/objects?account=prod-1", 403, "you do not have permission to read account prod-1"},
		{"an unknown user", "", "/objects", 403, "Access is denied"},
		{"an object with permission", "dev", "/objects/prod-3/pods/shop/web-0", 200, `"name":"web-0"`},
		{"an object without permission", "dev", "/objects/prod-1/pods/shop/web-0", 403, "Access is denied"},
		{"a missing object without permission", "dev", "/objects/prod-1/pods/shop/nope", 403, "Access is denied"},
		{"a stream without permission", "dev", "/changes?account=prod-1", 403, "you do not have permission to read account prod-1"},
		{"accounts are open to everyone", "", "/accounts", 200, `"name":"prod-1"`},
		{"kinds are open to everyone", "", "/feeds?account=prod-1", 200, `"account":"prod-1"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			response, body := w.get(tt.path, "X-SPINNAKER-USER", tt.user)
			if response.StatusCode != tt.status || !strings.Contains(string(body), tt.want) {
				t.Errorf("got %d %s, want %d and %q", response.StatusCode, body, tt.status, tt.want)
			}
		})
	}
}

func TestChangesAreFilteredByPermission(t *testing.T) {
	world := shopWorld(t)
	cfg := configOf(world)
	cfg.HeartbeatInterval = 10 * time.Millisecond
	authorizer := &grants{byUser: map[string][]vedette.AccountName{authorize.Anonymous: {"dev"}}}
	cfg.Authorizer = authorizer
	s := openStream(t, cfg, client.Query{Kind: "pods"})
	s.expect("added dev/Pod/shop/web-0", "ready")
	world.Delete("prod-1", web0)
	world.Delete("dev", web0)
	s.expect("deleted dev/Pod/shop/web-0")
	authorizer.set(authorize.Anonymous, "prod-3")
	s.waitForHeartbeat() // the first may have been on its way
	s.waitForHeartbeat()
	world.Delete("prod-3", web0)
	s.expect("deleted prod-3/Pod/shop/web-0")
	authorizer.set(authorize.Anonymous, "*")
	s.waitForHeartbeat()
	s.waitForHeartbeat()
	world.Delete("prod-1", vedette.Key{Kind: web0.Kind, Namespace: "shop", Name: "broken-0"})
	s.expect("deleted prod-1/Pod/shop/broken-0")
	authorizer.mu.Lock()
	delete(authorizer.byUser, authorize.Anonymous)
	authorizer.mu.Unlock()
	s.expect("error")
}

// TestStreamOfAllAccountsEndsWithPermission checks that a stream of a user who may read all accounts
// ends when the user may not any more.
func TestStreamOfAllAccountsEndsWithPermission(t *testing.T) {
	world := shopWorld(t)
	cfg := configOf(world)
	cfg.HeartbeatInterval = 10 * time.Millisecond
	authorizer := &grants{byUser: map[string][]vedette.AccountName{authorize.Anonymous: {"*"}}}
	cfg.Authorizer = authorizer
	s := openStream(t, cfg, client.Query{Kind: "pods", Account: "dev"})
	s.expect("added dev/Pod/shop/web-0", "ready")
	s.waitForHeartbeat()
	authorizer.set(authorize.Anonymous, "dev")
	s.expect("error")
}

func (s *eventStream) waitForHeartbeat() {
	s.t.Helper()
	for deadline := time.After(time.Minute); ; {
		select {
		case e := <-s.events:
			if e.Type == "heartbeat" {
				return
			}
		case <-deadline:
			s.t.Fatal("got no heartbeat")
		}
	}
}

// TestAccountsSayWhatCallersMayDo checks that accounts have the permissions of the caller, and only if they are asked for.
func TestAccountsSayWhatCallersMayDo(t *testing.T) {
	cfg := configOf(shopWorld(t))
	cfg.Authorizer = &grants{byUser: map[string][]vedette.AccountName{"ann": {"dev"}}}
	w := serve(t, cfg)
	c, err := client.New(w.url)
	if err != nil {
		t.Fatal(err)
	}
	c.User = "ann"
	accounts, err := c.AccountsWithAccess(t.Context(), "")
	if err != nil || len(accounts) == 0 {
		t.Fatal(accounts, err)
	}
	for _, a := range accounts {
		want := ""
		if a.Name == "dev" {
			want = "READ"
		}
		if got := strings.Join(a.Access, ","); got != want {
			t.Errorf("%s: got %q, want %q", a.Name, got, want)
		}
	}
	if accounts, err = c.Accounts(t.Context(), "dev"); err != nil || accounts[0].Access != nil {
		t.Errorf("got %+v, %v, want no access", accounts, err)
	}
	cfg.Authorizer = &unreadableGrants{}
	w = serve(t, cfg)
	if c, err = client.New(w.url); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AccountsWithAccess(t.Context(), ""); vedette.KindOf(err) != vedette.Unavailable {
		t.Errorf("got %v, want an error and not that nothing is allowed", err)
	}
}

// unreadableGrants are grants that cannot be looked up.
type unreadableGrants struct{ grants }

func (*unreadableGrants) CheckAccount(context.Context, authorize.Caller, vedette.AccountName, authorize.Access) error {
	return vedette.Errorf(vedette.Unavailable, "the database is away")
}
