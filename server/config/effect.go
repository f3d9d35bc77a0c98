package config

import (
	"fmt"
	"slices"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/settings"
	"github.com/vedette-io/vedette/server/discover"
)

// switches returns the settings without which others have no effect.
func (c *Config) switches() []configfile.Switch {
	const isOff = " is not true"
	a := c.Artifacts
	switches := []configfile.Switch{
		{Keys: "prometheus.", IsOff: !c.Prometheus.Enabled, Because: "prometheus.enabled" + isOff},
		{Keys: "pprof.", IsOff: !c.Pprof.Enabled, Because: "pprof.enabled" + isOff},
		{Keys: "tracing.", IsOff: !c.Tracing.Enabled, Because: "tracing.enabled" + isOff},
		{Keys: "secrets.vault.", IsOff: !c.Secrets.Vault.Enabled, Because: "secrets.vault.enabled" + isOff},
		{Keys: "upstream.", IsOff: !c.Upstream.IsEnabled(), Because: "upstream.baseUrl is not set"},
		{Keys: "services.fiat.", IsOff: !c.Fiat.Enabled, Except: "services.fiat.baseUrl", Because: "services.fiat.enabled" + isOff},
		{Keys: "kubesvc.cluster-kubernetes.", IsOff: c.Kubesvc.mode() != discover.ModeKubernetes, Because: "kubesvc.cluster is not kubernetes"},
		{Keys: "kubesvc.loadBalancer", IsOff: c.Kubesvc.mode() == discover.ModeLocal, Because: "kubesvc.cluster is local"},
		{Keys: "cache.kinds", IsOff: c.Cache.All, Because: "cache.all is true"},
		{Keys: "tasks.persistOutputForAllAccounts", IsOff: !c.Tasks.PersistOutput, Because: "tasks.persistOutput" + isOff},
		{Keys: "artifacts.", IsOff: !a.Enabled, Except: "artifacts.enabled", Because: "artifacts.enabled is false"},
	}
	if a.Enabled {
		for _, p := range []struct {
			name    string
			enabled bool
		}{{"github", a.GitHub.Enabled}, {"gitlab", a.GitLab.Enabled}, {"bitbucket", a.Bitbucket.Enabled}, {"git-repo", a.Git.Enabled},
			{"http", a.HTTP.Enabled}, {"helm", a.Helm.Enabled}, {"gcs", a.GCS.Enabled}, {"s3", a.S3.Enabled}, {"oracle", a.Oracle.Enabled}} {
			group := "artifacts." + p.name + "."
			switches = append(switches, configfile.Switch{Keys: group, IsOff: !p.enabled, Except: group + "accounts",
				Because: group + "enabled" + isOff})
		}
	}
	return slices.Concat(switches, settings.Switches(c.Logging, c.Management))
}

// managementWarning warns if unauthenticated clients can read the names of accounts at the port for probes.
func (c *Config) managementWarning() string {
	m := c.Management
	if !m.IsEnabled() || !c.Prometheus.Enabled || c.Prometheus.MaxAccounts == 0 || m.Server.SSL.Authenticates() ||
		(ListenAddress{Address: m.ListenAddress()}).isLoopback() {
		return ""
	}
	return fmt.Sprintf("readers of the metrics on %s are not authenticated: every client that can reach the port may read the names of accounts. "+
		"Allow only Prometheus to reach the port, or set prometheus.maxAccounts to 0 (see docs/securing.md)", m.ListenAddress())
}
