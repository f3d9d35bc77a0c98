package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/settings"
)

// switches returns the settings without which others have no effect.
func (c *Config) switches() []configfile.Switch {
	const isOff = " is not true"
	k := c.Kubernetes
	return append([]configfile.Switch{
		{Keys: "clouddriverNamespace", IsOff: !c.BalanceConnection, Because: "balanceConnection" + isOff},
		{Keys: "domainName", IsOff: !c.BalanceConnection || c.ClouddriverNamespace == "", Because: "balanceConnection is not true, or clouddriverNamespace is not set"},
		{Keys: "prometheus.", IsOff: !c.Prometheus.Enabled, Because: "prometheus.enabled" + isOff},
		{Keys: "pprof.", IsOff: !c.Pprof.Enabled, Because: "pprof.enabled" + isOff},
		{Keys: "tracing.", IsOff: !c.Tracing.Enabled, Because: "tracing.enabled" + isOff},
		{Keys: "secrets.vault.", IsOff: !c.Secrets.Vault.Enabled, Because: "secrets.vault.enabled" + isOff},
		{Keys: "kubernetes.retries.", IsOff: !k.Retries.Enabled, Except: "kubernetes.retries.enabled",
			Because: "kubernetes.retries.enabled is false"},
		{Keys: "kubernetes.cacheGroupSize", IsOff: k.CacheGroupDelay == 0, Because: "kubernetes.cacheGroupDelayMs is 0, so that there are no groups"},
		{Keys: "kubernetes.cacheGroupDelayMs", IsOff: k.CacheGroupSize == 0, Because: "kubernetes.cacheGroupSize is 0, so that all accounts start at once"},
	}, settings.Switches(c.Logging, c.Management)...)
}

// withoutEffect returns notices about settings that have no effect because of others, or beyond a limit.
func (c *Config) withoutEffect() []string {
	return slices.Concat(configfile.WithoutEffect(c.withAllAccounts(), c.Report, c.switches()), c.beyondLimits(), c.unusedCredentials())
}

// Limits of this version, which larger settings do not raise.
const (
	maxListsPerAccount = 4
	maxTimeoutSeconds  = 70
)

// beyondLimits returns notices about limits of the predecessor that are set higher than those of the agent.
func (c *Config) beyondLimits() (notices []string) {
	for _, l := range []struct {
		key          string
		value, limit int
		reason       string
	}{
		{"tasks.budgetPerAccount", c.Tasks.BudgetPerAccount, maxListsPerAccount, "lists of one account run at the same time, because more do not make an account faster"},
		{"timeoutSeconds", int(c.Timeout / time.Second), maxTimeoutSeconds, "seconds are waited for, because API servers abandon requests after 60"},
	} {
		if c.Report.IsSet(l.key) && l.value > l.limit {
			notices = append(notices, fmt.Sprintf("%s: %s is %d, but at most %d %s", c.Report.PositionOf(l.key), l.key, l.value, l.limit, l.reason))
		}
	}
	return notices
}

// unusedCredentials returns a notice about accounts whose kubeconfig is not used.
func (c *Config) unusedCredentials() []string {
	var names []string
	first := configfile.Position{}
	for i, a := range c.allAccounts {
		if !a.ServiceAccount || a.KubeconfigFile == "" && a.KubeconfigContents.Reveal() == "" {
			continue
		}
		if len(names) == 0 {
			first = c.Report.PositionOf(fmt.Sprintf("kubernetes.accounts[%d]", i))
		}
		names = append(names, string(a.AccountName()))
	}
	if len(names) == 0 {
		return nil
	}
	if more := len(names) - 10; more > 0 {
		names = append(names[:10], fmt.Sprintf("and %d more", more))
	}
	return []string{fmt.Sprintf("%s: the kubeconfig of the account has no effect, because serviceAccount is true: %s", first, strings.Join(names, ", "))}
}
