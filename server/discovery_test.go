package server

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/server/discover"
)

// listServers returns the answer to GET /armory/clouddrivers.
func listServers(t *testing.T, s *Server) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.REST().String()+"/armory/clouddrivers", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(response.StatusCode, " ", string(body))
}

// TestServerListsItself checks the list of servers in the modes that need no cluster.
func TestServerListsItself(t *testing.T) {
	for _, mode := range []discover.Mode{discover.ModeLocal, discover.ModeSQL} {
		cfg := config("sqlite:" + filepath.Join(t.TempDir(), "v.db"))
		cfg.Discovery.Mode = mode
		s, _ := startServer(t, cfg)
		awaitHealth(t, s, func(code int, _ string) bool { return code == http.StatusOK })
		got := listServers(t, s)
		if want := `200 [{"id":"s1","baseUrl":"http://` + s.REST().String() + `","lastUpdated":`; !strings.HasPrefix(got, want) || !strings.HasSuffix(got, `,"ready":true}]`+"\n") {
			t.Errorf("%s: got %s, want %s", mode, got, want)
		}
	}
}

// TestServerOutsideOfAClusterEnds checks that a server whose list of servers cannot become known says why, unless it may run without it.
func TestServerOutsideOfAClusterEnds(t *testing.T) {
	cfg := config("sqlite:" + filepath.Join(t.TempDir(), "v.db"))
	cfg.Discovery = discover.Config{Mode: discover.ModeKubernetes, Kubernetes: discover.KubernetesConfig{ServicePrefix: "spin-clouddriver", PortName: "http"}}
	s, ended := startServer(t, cfg)
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "the server does not run in a pod") {
			t.Errorf("got %v, want why it ended", err)
		}
	case <-time.After(time.Minute):
		t.Fatalf("the server runs: %s", listServers(t, s))
	}
	cfg.Discovery.Kubernetes.KeepRunning = true
	s, _ = startServer(t, cfg)
	awaitHealth(t, s, func(code int, _ string) bool { return code == http.StatusOK })
	for changed := s.servers.Changed(); s.servers.Servers() == nil; changed = s.servers.Changed() {
		<-changed
	}
	if got := listServers(t, s); !strings.HasPrefix(got, `200 [{"id":"s1",`) {
		t.Errorf("got %s, want the table of servers", got)
	}
}
