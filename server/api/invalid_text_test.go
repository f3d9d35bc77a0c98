package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/middleware"
)

// TestInvalidTextIsRejected sends invalid text wherever a request contains a name. It must not
// reach an agent, because the agent's stream cannot carry it.
func TestInvalidTextIsRejected(t *testing.T) {
	const operation = `{"account":"dev","verb":"get","kind":"pod","namespace":"shop","name":"web-0"}`
	for _, tt := range []struct{ name, method, path, body, header, want string }{
		{"a pod of a log", "GET", "/logs?account=dev&namespace=default&pod=%ff", "", "", "the query must not contain the byte 0xff"},
		{"a container", "GET", "/logs?account=dev&namespace=default&pod=web-0&container=a%00", "", "", "U+0000"},
		{"a parameter's name", "GET", "/objects?kind=pod&%ff=1", "", "", "0xff"},
		{"a namespace in the path", "GET", "/objects/dev/pods/%e8/web-0", "", "", "the path must not contain the byte 0xe8"},
		{"a name with a new line", "GET", "/objects/dev/pods/shop/web%0A0", "", "", "U+000A"},
		{"a user", "GET", "/objects?kind=pod", "", "J\xfcrgen", "the header X-Spinnaker-User must not contain the byte 0xfc"},
		{"a body's name", "POST", "/operations", strings.Replace(operation, "web-0", "\xff", 1), "", "the operation must not contain the byte 0xff"},
		{"a body's manifest", "POST", "/operations", `{"account":"dev","verb":"apply","manifest":{"kind":"Pod","metadata":{"name":"` + "\xff" + `"}}}`, "", "0xff"},
		{"an escaped control character", "POST", "/operations", strings.Replace(operation, "web-0", `a\u0000`, 1), "", "the field name must not contain the control character U+0000"},
		{"a kind", "POST", "/operations", strings.Replace(operation, `"pod"`, `"po\td"`, 1), "", "the field kind must not contain"},
		{"a selector", "POST", "/operations", `{"account":"dev","verb":"list","kind":"pod","labelSelector":"a=\u007f"}`, "", "the field labelSelector"},
		{"an element of a list", "POST", "/operations", `{"account":"dev","verb":"prune","all":true,"namespaces":["shop","\u0001"]}`, "", "the field namespaces"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, dispatcher := configOf(shopWorld(t)), &fakeDispatcher{}
			cfg.Dispatch = dispatcher
			status, body := send(t, api.New(cfg), tt.method, "/vedette/v1"+tt.path, tt.body, tt.header)
			if status != http.StatusBadRequest || !strings.Contains(body, tt.want) || !strings.Contains(body, `"kind":"invalid"`) {
				t.Errorf("got %d %s, want %d and %q", status, body, http.StatusBadRequest, tt.want)
			}
			if received := dispatcher.operations(); len(received) > 0 {
				t.Errorf("got the operations %+v at the agent, want none", received)
			}
		})
	}
}

// send passes a request to a handler as a server would read it.
func send(t *testing.T, handler http.Handler, method, path, body, user string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if user != "" {
		r.Header.Set("X-SPINNAKER-USER", user)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// slowBody is a request body that arrives too slowly.
type slowBody struct{}

func (slowBody) Read([]byte) (int, error) { return 0, middleware.ErrSlowBody }

func TestSlowBodyTimesOut(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/vedette/v1/operations", slowBody{})
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	api.New(configOf(shopWorld(t))).ServeHTTP(w, r)
	if w.Code != http.StatusRequestTimeout || !strings.Contains(w.Body.String(), "too slowly") {
		t.Errorf("got %d %s, want %d and %q", w.Code, w.Body, http.StatusRequestTimeout, "too slowly")
	}
}
