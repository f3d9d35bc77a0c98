package api_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/server/authorize"
)

// grants are the accounts that each user may read.
type grants struct {
	mu sync.Mutex
	of map[string][]vedette.AccountName
}

func (g *grants) set(user string, accounts ...vedette.AccountName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of[user] = accounts
}

func (g *grants) Readable(_ context.Context, c authorize.Caller) (func(vedette.AccountName) bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	accounts, ok := g.of[c.User]
	if !ok {
		return nil, vedette.Errorf(vedette.Denied, "Access is denied")
	}
	may := map[vedette.AccountName]bool{}
	for _, a := range accounts {
		may[a] = true
	}
	return func(a vedette.AccountName) bool { return may[a] }, nil
}

func (g *grants) CheckAccount(ctx context.Context, c authorize.Caller, account vedette.AccountName, access authorize.Access) error {
	may, err := g.Readable(ctx, c)
	if err == nil && (access != authorize.Read || !may(account)) {
		err = vedette.Errorf(vedette.Denied, "Access is denied")
	}
	return err
}

func TestObjectsOfThoseWhoMay(t *testing.T) {
	cfg := configOf(shop(t))
	cfg.Authority = &grants{of: map[string][]vedette.AccountName{"dev": {"dev", "prod-3"}, "new": nil}}
	w := serve(t, cfg)
	for _, tt := range []struct {
		why, user, path string
		status          int
		total           string
	}{
		{"all that may be read", "dev", "/objects?kind=pods&name=web-0", 200, `"total":2`},
		{"of those that fit, what may be read", "dev", "/objects?kind=pods&name=web-0&account=prod-*", 200, `"total":1`},
		{"a table as well", "dev", "/objects?kind=pods&name=web-0&as=table", 200, `"total":2`},
		{"nothing of nothing", "new", "/objects", 200, `"total":0`},
		{"what is named is refused", "dev", "/objects?account=prod-1", 403, "you may not read account prod-1"},
		{"and to who is not known", "", "/objects", 403, "Access is denied"},
		{"an object that may be read", "dev", "/objects/prod-3/pods/shop/web-0", 200, `"name":"web-0"`},
		{"one that may not", "dev", "/objects/prod-1/pods/shop/web-0", 403, "Access is denied"},
		{"one that is not there, where nothing may be read", "dev", "/objects/prod-1/pods/shop/nope", 403, "Access is denied"},
		{"a stream of what may not be read", "dev", "/changes?account=prod-1", 403, "you may not read account prod-1"},
		{"what accounts there are is no secret", "", "/accounts", 200, `"name":"prod-1"`},
		{"nor what they cache", "", "/feeds?account=prod-1", 200, `"account":"prod-1"`},
	} {
		t.Run(tt.why, func(t *testing.T) {
			response, body := w.get(tt.path, "X-SPINNAKER-USER", tt.user)
			if response.StatusCode != tt.status || !strings.Contains(string(body), tt.total) {
				t.Errorf("%d: %s", response.StatusCode, body)
			}
		})
	}
}

func TestChangesOfThoseWhoMay(t *testing.T) {
	world := shop(t)
	cfg := configOf(world)
	cfg.Heartbeat = 10 * time.Millisecond
	anonymous := &grants{of: map[string][]vedette.AccountName{authorize.Anonymous: {"dev"}}}
	cfg.Authority = anonymous
	s := follow(t, cfg, client.Query{Kind: "pods"})
	s.expect("added dev/Pod/shop/web-0", "ready")
	world.Delete("prod-1", web0)
	world.Delete("dev", web0)
	s.expect("deleted dev/Pod/shop/web-0")
	anonymous.set(authorize.Anonymous, "prod-3")
	s.beat() // that may have been on its way
	s.beat()
	world.Delete("prod-3", web0)
	s.expect("deleted prod-3/Pod/shop/web-0")
	anonymous.mu.Lock()
	delete(anonymous.of, authorize.Anonymous)
	anonymous.mu.Unlock()
	s.expect("error")
}

// beat waits for a heartbeat.
func (s *stream) beat() {
	s.t.Helper()
	for deadline := time.After(20 * time.Second); ; {
		select {
		case e := <-s.events:
			if e.Type == "heartbeat" {
				return
			}
		case <-deadline:
			s.t.Fatal("no heartbeat came")
		}
	}
}
