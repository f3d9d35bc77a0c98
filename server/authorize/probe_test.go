package authorize

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

func TestProbeRecognizesFiat(t *testing.T) {
	for status, want := range map[int]vedette.ErrorKind{200: "", 404: vedette.Invalid, 503: vedette.Unavailable, 302: vedette.Invalid} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/authorize/anonymous" {
				t.Errorf("got the path %s", r.URL.Path)
			}
			w.WriteHeader(status)
			fmt.Fprint(w, `{"name":"anonymous"}`)
		}))
		err := FiatConfig{BaseURL: server.URL}.Probe(t.Context())
		server.Close()
		if vedette.KindOf(err) != want || err != nil && !strings.Contains(err.Error(), "check services.fiat.baseUrl") {
			t.Errorf("status %d: got %v of kind %q, want kind %q", status, err, vedette.KindOf(err), want)
		}
	}
	if err := (FiatConfig{BaseURL: "http://127.0.0.1:1"}).Probe(t.Context()); vedette.KindOf(err) != vedette.Unavailable {
		t.Errorf("nothing listens: got %v", err)
	}
}
