package secrettest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/secret"
)

// ExpectNotFound checks that an engine calls a secret missing only if a server answers 404 with the body that the service sends for one.
// The 404 of anything else may go away. newEngine starts the server.
func ExpectNotFound(t *testing.T, reference, ownBody string, newEngine func(server *httptest.Server) secret.Engine) {
	t.Helper()
	for body, want := range map[string]struct {
		kind vedette.ErrorKind
		text string
	}{
		ownBody: {vedette.NotFound, ""}, "<html><title>404 Not Found</title></html>": {vedette.Unavailable, "check the address"},
		"": {vedette.Unavailable, "check the address"}, `{"message":"no route"}`: {vedette.Unavailable, "check the address"},
	} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, body)
		}))
		engine, _, _ := strings.Cut(strings.TrimPrefix(reference, "encrypted:"), "!")
		_, err := secret.New(map[string]secret.Engine{engine: newEngine(server)}, secret.Timing{Total: 1}).Load(t.Context()).Resolve(reference)
		if vedette.KindOf(err) != want.kind || err == nil || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s after 404 with %q: got %v, want %s with %q", reference, body, err, want.kind, want.text)
		}
		server.Close()
	}
}
