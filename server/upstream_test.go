package server

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/upstream"
)

// TestStoredAccountsAreTheServersOwn runs a server in front of another one. Accounts that a database knows are the
// server's own.
func TestStoredAccountsAreTheServersOwn(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, map[string]string{"/credentials": `[{"name":"aws"},{"name":"prod","type":"of the other"}]`}[r.URL.Path])
	}))
	defer other.Close()
	url := "sqlite:" + filepath.Join(t.TempDir(), "v.db")
	registerAccount(t, url, "prod", false)
	cfg := config(url)
	cfg.Upstream = &upstream.Config{BaseURL: other.URL}
	t.Run("nothing of the account is stored yet", func(t *testing.T) {
		s, _ := startServer(t, cfg)
		awaitHealth(t, s, func(code int, body string) bool { return code == http.StatusOK && strings.Contains(body, `"upstream"`) })
		checkAnswer(t, s, "/credentials", `"of the other"`, `"environment":"prod"`)
	})
	registerAccount(t, url, "prod", true)
	t.Run("the account is complete", func(t *testing.T) {
		s, _ := startServer(t, cfg)
		awaitHealth(t, s, func(code int, body string) bool { return code == http.StatusOK && !strings.Contains(body, "UNKNOWN") })
		checkAnswer(t, s, "/credentials", `"environment":"prod"`, `of the other`)
		checkAnswer(t, s, "/credentials", `{"name":"aws"}]`, `of the other`)
		checkAnswer(t, s, "/credentials/prod", `"spinnakerKindMap"`, `of the other`)
		checkAnswer(t, s, "/subnets", ``, `prod`)
		checkAnswer(t, s, "/vedette/v1/accounts", `"prod"`, `of the other`)
	})
}

func checkAnswer(t *testing.T, s *Server, path, want, unwanted string) {
	t.Helper()
	response, err := http.Get("http://" + s.REST().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(body), want) || strings.Contains(string(body), unwanted) {
		t.Errorf("%s: got %d %s %v, want %q and not %q", path, response.StatusCode, body, err, want, unwanted)
	}
}

// registerAccount registers an account before a server opens the database, and stores all of its only kind if it is complete.
func registerAccount(t *testing.T, url string, name vedette.AccountName, isComplete bool) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	st, err := store.Open(ctx, sqldb.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Register(ctx, vedette.Account{Name: name, Cluster: vedette.Cluster{UID: "uid"}}); err != nil {
		t.Fatal(err)
	}
	if isComplete {
		completeAccount(ctx, t, st, name)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

func completeAccount(ctx context.Context, t *testing.T, st *store.Store, name vedette.AccountName) {
	t.Helper()
	term, err := st.Acquire(ctx, name, registry.CacherClaim{Agent: "a", Server: "s"})
	if err != nil {
		t.Fatal(err)
	}
	pods := vedette.Resource{Kind: vedette.Kind{Name: "Pod"}, Version: "v1", Plural: "pods", Namespaced: true}
	feed := vedette.Feed{Kind: pods.Kind}
	if _, err := st.Declare(ctx, name, term, []commit.DeclaredFeed{{Feed: feed, Resource: pods}}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Commit(ctx, commit.Batch{Account: name, Term: term, Feeds: []commit.FeedUpdate{{Feed: feed, State: vedette.FeedLive}}}); err != nil {
		t.Fatal(err)
	}
	if err := st.MarkSettled(ctx, name, term, true); err != nil {
		t.Fatal(err)
	}
}
