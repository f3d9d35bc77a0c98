package kube

import (
	"fmt"
	"testing"
)

// TestNewestCredentialsAreUsed lets attempts to reload credentials overlap with others and with a rotation. What an attempt built that has begun
// before must not replace what is newer: the account would say that its credentials are current, and use old ones.
func TestNewestCredentialsAreUsed(t *testing.T) {
	access := func(token string) Access {
		return Access{KubeconfigContents: fmt.Appendf(nil, "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"+
			"clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {token: %s}}]\n", token)}
	}
	newCluster := func() *Cluster {
		c, err := Connect(access("old"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	build := func(c *Cluster) transports {
		built, err := c.buildTransports(c.beginAttempt())
		if err != nil {
			t.Fatal(err)
		}
		return built
	}
	rotate := func(c *Cluster) {
		a := access("new")
		cfg, _, err := a.restConfig()
		if err != nil {
			t.Fatal(err)
		}
		used, err := c.prepareAccess(a, cfg)
		if err == nil {
			err = c.useAccess(used)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	check := func(name string, c *Cluster, want *connConfig) {
		t.Helper()
		if c.currentConnConfig() != want || c.lists.conns.config != want {
			t.Errorf("%s: the newest credentials are not in use", name)
		}
	}

	c := newCluster()
	older := build(c)
	rotate(c)
	want := c.currentConnConfig()
	c.installReloaded(older)
	check("a rotation meanwhile", c, want)
	if want.conf.BearerToken != "new" || c.usedAccess().cfg.BearerToken != "new" {
		t.Errorf("got the token %q and the access %q, want the new ones", want.conf.BearerToken, c.usedAccess().cfg.BearerToken)
	}

	c = newCluster()
	first, second := build(c), build(c)
	c.installReloaded(second)
	c.installReloaded(first)
	check("a later reload meanwhile", c, second.config)
	third := build(c)
	c.installReloaded(third)
	check("one after the other", c, third.config)

	c = newCluster()
	during := build(c)
	c.installReloaded(during)
	rotate(c)
	check("a rotation after a reload", c, c.connConfig)
	if got := c.currentConnConfig().conf.BearerToken; got != "new" {
		t.Errorf("got the token %q after a rotation", got)
	}
}
