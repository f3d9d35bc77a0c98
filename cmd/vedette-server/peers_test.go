package main

import (
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server"
)

func TestPeersSettingsAreConverted(t *testing.T) {
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	const shared = "sql.url: postgres://u:p@db/vedette\nkubesvc.cluster: database\n"
	for text, want := range map[string]struct {
		id    string
		peers *server.PeersConfig
	}{
		"server.port: 7002":                         {hostname, nil},
		"kubesvc.cluster: database":                 {hostname, nil}, // the embedded database
		"sql.url: postgres://u:p@db/vedette":        {hostname, nil},
		shared:                                      {hostname, &server.PeersConfig{Address: ":7003"}},
		shared + "server: {id: s1, peers.port: 99}": {"s1", &server.PeersConfig{Address: ":99"}},
		shared + "server.peers: {address: '*', advertise: s1.example.com}": {hostname, &server.PeersConfig{Address: ":7003", Advertise: "s1.example.com"}},
		shared + "server.peers.restOperations: true":                       {hostname, &server.PeersConfig{Address: ":7003", RESTOperations: true}},
		"server.peers.restOperations: true":                                {hostname, nil},
		shared + "server.peers: {address: 10.0.0.1, port: 0}":              {hostname, &server.PeersConfig{Address: "10.0.0.1:0"}},
	} {
		settings, err := newServerConfig(loadText(t, text), slog.New(slog.DiscardHandler))
		if err != nil || settings.ID != vedette.ServerID(want.id) || !reflect.DeepEqual(settings.Peers, want.peers) {
			t.Errorf("%s: got %s, %+v, %v, want %s, %+v", text, settings.ID, settings.Peers, err, want.id, want.peers)
		}
	}
	connections := strings.Join(loadText(t, shared).Connections(), "\n")
	if !strings.Contains(connections, "port for other servers: :7003") {
		t.Errorf("got the ports %q, want that for other servers", connections)
	}
}

// TestLoadBalancerSetting says whether accounts move between servers to balance agents.
func TestLoadBalancerSetting(t *testing.T) {
	const shared = "sql.url: postgres://u:p@db/vedette\nkubesvc.cluster: database\n"
	for text, stays := range map[string]bool{shared: false, shared + "kubesvc.loadBalancer: none": false, shared + "kubesvc.loadBalancer: MN": true,
		shared + "armory.kubesvc.loadBalancer: mn": true} {
		settings, err := newServerConfig(loadText(t, text), slog.New(slog.DiscardHandler))
		if err != nil || settings.Balance.IsWithinServer != stays {
			t.Errorf("%s: accounts stay at their server: %v, %v, want %v", text, settings.Balance.IsWithinServer, err, stays)
		}
	}
}
