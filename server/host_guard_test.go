package server

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestDNSRebindingIsRejected sends the requests that a browser sends for a page whose name resolves
// to 127.0.0.1. For the browser they are same-origin.
func TestDNSRebindingIsRejected(t *testing.T) {
	cfg := config("sqlite:" + filepath.Join(t.TempDir(), "v.db"))
	cfg.RESTHosts = []string{"mine.example"}
	s, _ := startServer(t, cfg)
	awaitHealth(t, s, func(code int, _ string) bool { return code == http.StatusOK })
	_, port, err := net.SplitHostPort(s.REST().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/kubernetes/ops", "/vedette/v1/operations", "/credentials", "/vedette/v1/objects"} {
		if code, body := postWithHost(t, s, "evil.example:"+port, path); code != http.StatusForbidden || !strings.Contains(body, "server.hosts") {
			t.Errorf("%s: %d %s", path, code, body)
		}
		if code, body := postWithHost(t, s, "mine.example:"+port, path); code == http.StatusForbidden {
			t.Errorf("%s by a listed name: got %d %s", path, code, body)
		}
	}
}

// postWithHost returns the message of an error in either API's format.
func postWithHost(t *testing.T, s *Server, host, path string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.REST().String()+path, strings.NewReader("[]"))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	r.Header.Set("Origin", "http://"+host)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var vedetteBody struct {
		Error struct{ Kind, Message string }
	}
	var clouddriverBody struct{ Error, Message string }
	if strings.HasPrefix(path, "/vedette/") {
		err = json.Unmarshal(raw, &vedetteBody)
	} else {
		err = json.Unmarshal(raw, &clouddriverBody)
	}
	if err != nil {
		t.Errorf("%s: got error %v in %s", path, err, raw)
	}
	return response.StatusCode, vedetteBody.Error.Message + clouddriverBody.Message
}
