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
	"github.com/vedette-io/vedette/server/upstream"
)

// TestUpstream runs a server in front of another one. Accounts that a database knows are the
// server's own.
func TestUpstream(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, map[string]string{"/credentials": `[{"name":"aws"},{"name":"prod","type":"of the other"}]`}[r.URL.Path])
	}))
	defer other.Close()
	url := "sqlite:" + filepath.Join(t.TempDir(), "v.db")
	registerAccount(t, url, "prod")
	cfg := config(url)
	cfg.Upstream = &upstream.Config{BaseURL: other.URL}
	s, _ := startServer(t, cfg)
	awaitHealth(t, s, func(code int, body string) bool {
		return code == http.StatusOK && strings.Contains(body, `"upstream"`) && strings.Contains(body, "UNKNOWN")
	})
	for _, tt := range []struct {
		path   string
		status int
		want   string // part of the body
	}{
		{"/credentials", 200, `"environment":"prod"`},
		{"/credentials", 200, `{"name":"aws"}]`},
		{"/credentials/prod", 200, `"spinnakerKindMap"`},
		{"/subnets", 200, ""},
		{"/vedette/v1/accounts", 200, `"prod"`},
	} {
		response, err := http.Get("http://" + s.REST().String() + tt.path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != tt.status || !strings.Contains(string(body), tt.want) || strings.Contains(string(body), "of the other") {
			t.Errorf("%s: got %d %s %v, want %d with %s", tt.path, response.StatusCode, body, err, tt.status, tt.want)
		}
	}
	awaitHealth(t, s, func(_ int, body string) bool {
		return !strings.Contains(body, "UNKNOWN") && strings.Contains(body, `"requests":3`)
	})
}

// registerAccount registers an account before a server opens the database.
func registerAccount(t *testing.T, url string, name vedette.AccountName) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	st, err := store.Open(ctx, store.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Register(ctx, vedette.Account{Name: name, Cluster: vedette.Cluster{UID: "uid"}}); err != nil {
		t.Fatal(err)
	}
	if names, err := st.AccountNames(ctx); err != nil || len(names) != 1 || names[0] != name {
		t.Errorf("got the names %q %v, want %s", names, err, name)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}
