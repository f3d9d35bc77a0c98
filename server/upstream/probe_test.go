package upstream

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
)

func TestProbeCountsUpstreamAccounts(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		status     int
		kind       vedette.ErrorKind
		want       string
	}{
		{"two accounts", `[{"name":"a"},{"name":"b"}]`, 200, "", ""},
		{"another service", `<html>`, 200, vedette.Invalid, "is not a list of accounts"},
		{"the wrong path", `{}`, 404, vedette.Unavailable, "404 Not Found to GET /credentials"},
		{"a wrong password", ``, 401, vedette.Denied, "check upstream.username"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if user, password, _ := r.BasicAuth(); user != "u" || password != "p" || r.URL.Path != "/base/credentials" {
				w.WriteHeader(http.StatusTeapot)
				return
			}
			w.WriteHeader(tt.status)
			fmt.Fprint(w, tt.body)
		}))
		n, err := Probe(t.Context(), Config{BaseURL: server.URL + "/base", Username: "u", Password: configfile.NewSecret("p")})
		server.Close()
		if tt.kind == "" && (err != nil || n != 2) || tt.kind != "" && (vedette.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %d, %v, want an error of kind %q with %q", tt.name, n, err, tt.kind, tt.want)
		}
	}
	loop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(incompleteHeader, incompleteFor(reasonLoop))
		fmt.Fprint(w, `[]`)
	}))
	defer loop.Close()
	if _, err := Probe(t.Context(), Config{BaseURL: loop.URL}); vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), "leads to a vedette-server") {
		t.Errorf("a vedette-server whose upstream is itself: got %v", err)
	}
	if _, err := Probe(t.Context(), Config{BaseURL: "http://127.0.0.1:1"}); vedette.KindOf(err) != vedette.Unavailable {
		t.Errorf("nothing listens: got %v", err)
	}
}
