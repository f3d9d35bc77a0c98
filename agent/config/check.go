package config

import (
	"fmt"
	"net"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/keypair"
	"github.com/vedette-io/vedette/internal/settings"
)

// check adds the problems of all settings except accounts, besides those that the tags of the settings find.
func (c *Config) check() {
	all := c.Report.Checker()
	checkName(all, "agentId", string(c.AgentID))
	checkName(all, "zoneId", c.ZoneID)
	c.Management.Check(c.Server.Port, all.At("management"))
	c.checkPortsDiffer()
	c.Logging.Check(all.At("logging"))
	c.Prometheus.SSL.Check("", all.At("prometheus.ssl"))
	c.Tracing.Check(all.At("tracing"))
	if err := c.Server.Guard(nil).Check(); err != nil {
		all.Problem("server.adminToken", ": %s", err)
	}
	c.Clouddriver.check(all.At("clouddriver"))
	c.Secrets.Check(all.At("secrets"))
	if _, err := keypair.ParseClientAuth(c.Server.SSL.ClientAuth); err != nil {
		all.Problem("server.ssl.clientAuth", ": %s", err)
	}
	if c.Server.SSL.Enabled && c.Server.SSL.CertFile == "" {
		all.Problem("server.ssl.enabled", " is true, but %q is missing%s", "server.ssl.certFile", settings.KeyStoreHint(c.Report))
	}
	if c.Outbox.MaxBytes < 64<<10 {
		all.Problem("outbox.maxBytes", " must be at least 64KiB because a large object must fit, got %s", configfile.Bytes(c.Outbox.MaxBytes))
	}
	for i, k := range c.Kubernetes.ServerSideApply.Kinds {
		if path := fmt.Sprintf("kubernetes.serverSideApply.kinds[%d]", i); k.Kind == "" {
			c.Report.AddAt(path, "%q is missing or empty", path+".kind")
		}
	}
	if p := c.Redact.Preset; p != "" && p != "strict" {
		all.Problem("redact.preset", " must be strict, or left out, got %q", p)
	}
}

func (d Clouddriver) check(c configfile.Checker) {
	if host, _, err := net.SplitHostPort(d.GRPC); err != nil || host == "" {
		c.Problem("grpc", " must be a host and a port, for example spin-clouddriver-grpc:9091, got %q", d.GRPC)
	}
	if d.TLS.ClientKeyFile != "" && d.TLS.ClientCertFile == "" {
		c.Problem("tls.clientKeyFile", " is set, but %q is missing", c.Path("tls.clientCertFile"))
	}
	if d.Insecure != nil && *d.Insecure && d.TLS != (TLS{}) {
		c.Notice("insecure", "clouddriver.insecure is true: the agent connects without TLS and ignores the settings below clouddriver.tls")
	}
	d.Auth.check(c.At("auth"))
	d.Backoff.Check(c.At("backoff"))
}
