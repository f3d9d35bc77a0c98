package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/probe"
	"github.com/vedette-io/vedette/server/config"
)

func loadText(t *testing.T, text string) *config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "server.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestCheckNamesWhatIsMissing checks what is wrong with configurations whose text is valid.
func TestCheckNamesWhatIsMissing(t *testing.T) {
	for text, want := range map[string]string{
		"dataDir: /no/dir": "", // check does not connect
		"server.ssl: {enabled: true, certFile: /no/cert}":                       "the file /no/cert does not exist",
		"prometheus: {enabled: true, ssl: {enabled: true, certFile: /no/cert}}": "prometheus.ssl: the file /no/cert does not exist",
		"prometheus: {ssl: {enabled: true, certFile: /no/cert}}":                "",
		"sql.url: postgres://h/d?sslmode=maybe":                                 "the PostgreSQL URL cannot be read",
		"upstream: {baseUrl: 'https://x', ssl.cacertFile: /no/ca}":              "the file /no/ca does not exist",
	} {
		err := check(loadText(t, text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestEachConfiguredServiceIsTried(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers := map[string]string{"/authorize/anonymous": `{}`, "/v2/projects": `[]`, "/credentials": `[{}]`}
		_, _ = w.Write([]byte(answers[r.URL.Path]))
	}))
	defer service.Close()
	dir := t.TempDir()
	services := func(address string) string {
		return "dataDir: " + dir + "\nservices: {fiat: {enabled: true, baseUrl: '" + address + "'}, front50.baseUrl: '" + address + "'}\nupstream.baseUrl: '" + address + "'\n"
	}
	for _, tt := range []struct {
		name, text string
		want       string
		failed     bool
	}{
		{"all work", services(service.URL), "ok      database sqlite:" + dir + "/vedette.db: SQLite: the server will create " + dir + "/vedette.db\nok      Fiat URL\nok      Front50 URL\nok      upstream Clouddriver URL: 1 accounts\n", false},
		{"only the database", "dataDir: " + dir, "ok      database", false},
		{"nothing listens", services("http://127.0.0.1:1"), "failed  Fiat http://127.0.0.1:1: ", true},
		{"a database that does not answer", "sql.url: postgres://u:secret@127.0.0.1:1/d", "failed  database postgres://u:********@127.0.0.1:1/d: open the database: the PostgreSQL server does not answer", true},
	} {
		all, err := probes(loadText(t, tt.text))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err = probe.Run(t.Context(), all, &out)
		got := strings.ReplaceAll(out.String(), service.URL, "URL")
		if !strings.HasPrefix(got, tt.want) && !strings.Contains(got, "\n"+tt.want) || (err != nil) != tt.failed || strings.Contains(got, "secret") {
			t.Errorf("%s: got %s, %v, want %s", tt.name, got, err, tt.want)
		}
	}
}
