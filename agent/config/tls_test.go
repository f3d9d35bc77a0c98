package config

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/keypair/keypairtest"
)

// TestEachTLSKeyCounts checks that each key of the connection's security counts.
func TestEachTLSKeyCounts(t *testing.T) {
	authority := keypairtest.New(t)
	pair := authority.Issue("agent-1")
	for setting, isInEffect := range map[string]func(*tls.Config, Clouddriver) bool{
		"serverName: s":            func(c *tls.Config, _ Clouddriver) bool { return c.ServerName == "s" },
		"insecureSkipVerify: true": func(c *tls.Config, _ Clouddriver) bool { return c.InsecureSkipVerify },
		"cacertFile: " + authority.File: func(c *tls.Config, _ Clouddriver) bool {
			return c.RootCAs != nil && c.RootCAs.Equal(authority.Pool)
		},
		"clientCertFile: " + pair.Cert + ", clientKeyFile: " + pair.Key: func(c *tls.Config, cd Clouddriver) bool {
			return c.GetClientCertificate != nil && strings.Contains(cd.DescribeCertificate(), "agent-1")
		},
		"clientCertFile: " + pair.Cert + ", clientKeyFile: " + pair.Key + ", clientKeyPassword: p": func(_ *tls.Config, cd Clouddriver) bool {
			return cd.TLS.keyPairFiles().Password == "p"
		},
		"clientCertFile: " + pair.Cert + ", clientKeyFile: " + pair.Key + ", clientKeyFilePassword: q": func(_ *tls.Config, cd Clouddriver) bool {
			return cd.TLS.keyPairFiles().Password == "q"
		},
	} {
		for text, want := range map[string]bool{"clouddriver.tls: {" + setting + "}": true, "clouddriver.insecure: false": false} {
			c, err := parse("c.yml", []byte(text), testEnv)
			if err != nil {
				t.Fatal(err)
			}
			config, err := c.Clouddriver.TLSConfig()
			if err != nil {
				t.Fatal(err)
			}
			if got := isInEffect(config, c.Clouddriver); got != want {
				t.Errorf("%s: %s is in effect: %v", text, setting, got)
			}
		}
	}
}
