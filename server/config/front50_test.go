package config

import (
	"strings"
	"testing"
)

func TestFront50ChecksNeedItsURL(t *testing.T) {
	for _, tt := range []struct {
		file, problem string
		client, check bool
	}{
		{"server.port: 7002", "", false, false},
		{"services.front50.baseUrl: http://spin-front50:8080", "", true, false},
		{"services: {front50: {enabled: true, baseUrl: 'http://spin-front50:8080'}, echo: {baseUrl: 'http://echo'}}", "", true, false},
		{"{services.front50.baseUrl: 'http://front50', cache.checkApplicationInFront50: true}", "", true, true},
		{"{services.front50.baseUrl: 'http://front50', kubernetes: {cache: {checkApplicationInFront50: true}}}", "", true, true},
		{"cache.checkApplicationInFront50: true", `"services.front50.baseUrl" is missing`, false, false},
		{"services.front50.baseUrl: spin-front50:8080", "must be a URL", false, false},
	} {
		c, err := parse("front50.yml", []byte(tt.file), func(string) (string, bool) { return "", false })
		if tt.problem != "" {
			if err == nil || !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("%s: got %v, want %q", tt.file, err, tt.problem)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.file, err)
			continue
		}
		if got := c.Front50.Client() != nil; got != tt.client || c.Cache.CheckApplicationInFront50 != tt.check {
			t.Errorf("%s: got a client: %v, check: %v; want %v, %v", tt.file, got, c.Cache.CheckApplicationInFront50, tt.client, tt.check)
		}
	}
}
