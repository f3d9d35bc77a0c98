package front50

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestProbeNamesTheSetting(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, `[]`)
	}))
	defer server.Close()
	if err := New(Config{BaseURL: server.URL}).Probe(t.Context()); err != nil {
		t.Error(err)
	}
	status = http.StatusNotFound
	if err := New(Config{BaseURL: server.URL}).Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "check services.front50.baseUrl") {
		t.Errorf("got %v", err)
	}
}
