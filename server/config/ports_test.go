package config

import (
	"strings"
	"testing"
)

func TestPortsMustDiffer(t *testing.T) {
	for file, rejected := range map[string]bool{
		"server.port: 9091":      true,
		"grpc.server.port: 7002": true,
		"server: {port: 8000, address: 10.0.0.1}\ngrpc.server: {port: 8000, address: 127.0.0.1}": false,
		"server: {port: 8000, address: '*'}\ngrpc.server: {port: 8000, address: 127.0.0.1}":      true,
		"server.port: 0\ngrpc.server.port: 0":                                                    false,
		"kubesvc.cluster: database\nsql.url: postgres://u:p@db/v\nserver.port: 7003":             true,
		"kubesvc.cluster: database\nsql.url: postgres://u:p@db/v\nserver.peers.port: 9091":       true,
		"server.peers.port: 9091": false, // it is not open
		"server.port: 9092":       false,
	} {
		_, err := parse("server.yml", []byte(file), nil)
		if got := err != nil && strings.Contains(err.Error(), "choose another port for one of them"); got != rejected {
			t.Errorf("%s: got %v, want an error: %v", file, err, rejected)
		}
	}
}
