package config

import (
	"testing"
	"time"
)

func TestUpstreamConfig(t *testing.T) {
	none, err := parse("c.yml", []byte("server.port: 1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := none.Upstream.UpstreamConfig(); got != nil || err != nil {
		t.Errorf("without an upstream: got %+v %v, want nil", got, err)
	}
	const file = "upstream: {baseUrl: 'https://a/b', username: u, password: p, headers: {X-Token: t}, mergeTimeout: 2s, timeout: 30s, mergeBytes: 2MiB}"
	c, err := parse("upstream.yml", []byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Upstream.UpstreamConfig()
	if err != nil || got.BaseURL != "https://a/b" || got.Username != "u" || got.Password != "p" || got.Headers["X-Token"] != "t" || got.MergeTimeout != 2*time.Second ||
		got.Timeout != 30*time.Second || got.MergeBytes != 2<<20 || got.TLS == nil {
		t.Errorf("got %+v %v", got, err)
	}
	c.Upstream.SSL.CACertFile = "missing.pem"
	if got, err := c.Upstream.UpstreamConfig(); err == nil {
		t.Errorf("a missing file: got %+v, want an error", got)
	}
}
