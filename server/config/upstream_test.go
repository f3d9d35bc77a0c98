package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/keypair"
)

// loadText loads a file with the given content.
func loadText(t *testing.T, content string) *Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "vedette-server.yml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(file, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestUpstreamSettingsAreConverted(t *testing.T) {
	if got, err := loadText(t, "server.port: 1").Upstream.UpstreamConfig(); got != nil || err != nil {
		t.Errorf("without an upstream: got %+v %v, want nil", got, err)
	}
	c := loadText(t, "upstream: {baseUrl: 'https://a/b', username: u, password: p, headers: {X-Token: t}, mergeTimeout: 2s, timeout: 30s, mergeBytes: 2MiB, "+
		"refreshInterval: 9s, maxStale: 2h, partial: true}")
	got, err := c.Upstream.UpstreamConfig()
	if err != nil || got.BaseURL != "https://a/b" || got.Username != "u" || got.Password.Reveal() != "p" || got.Headers["X-Token"].Reveal() != "t" || got.MergeTimeout != 2*time.Second ||
		got.Timeout != 30*time.Second || got.MergeBytes != 2<<20 || got.RefreshInterval != 9*time.Second || got.MaxStale != 2*time.Hour || !got.Partial || got.TLS == nil {
		t.Errorf("got %+v %v", got, err)
	}
	ssl := loadText(t, "upstream: {baseUrl: 'https://a', ssl: {cacertFile: /ca, certFile: 'file:/c', keyFile: /k, keyPassword: p}}").Upstream.SSL
	if got := ssl.clientTLS(); got != (keypair.ClientTLS{CAFile: "/ca", KeyPair: keypair.Files{Cert: "/c", Key: "/k", Password: "p"}}) {
		t.Errorf("got %+v", got)
	}
	c.Upstream.SSL.CACertFile = "missing.pem"
	if got, err := c.Upstream.UpstreamConfig(); err == nil {
		t.Errorf("a missing file: got %+v, want an error", got)
	}
}
