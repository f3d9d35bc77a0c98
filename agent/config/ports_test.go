package config

import (
	"strings"
	"testing"
)

func TestPortsMustDiffer(t *testing.T) {
	for file, rejected := range map[string]bool{
		"server.port: 8008\nprometheus.enabled: true":                                 true,
		"server.port: 8008":                                                           false, // metrics are off
		"pprof: {enabled: true, port: 8082}":                                          true,
		"prometheus: {enabled: true, port: 6060}\npprof: {enabled: true, port: 6060}": true,
		"prometheus: {enabled: true, port: 0}\npprof: {enabled: true, port: 0}":       false,
	} {
		_, err := parse("agent.yml", []byte(file), nil)
		if got := err != nil && strings.Contains(err.Error(), "choose another port for one of them"); got != rejected {
			t.Errorf("%s: got %v, want an error: %v", file, err, rejected)
		}
	}
}
