package config

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/internal/keypair"
	"github.com/vedette-io/vedette/internal/settings"
)

// check adds the problems of all settings except accounts.
func (c *Config) check() {
	c.checkName("agentId", string(c.AgentID))
	c.checkName("zoneId", c.ZoneID)
	c.checkPort("server.port", c.Server.Port)
	c.checkPort("prometheus.port", c.Prometheus.Port)
	c.checkPort("pprof.port", c.Pprof.Port)
	c.checkPortsDiffer()
	c.Logging.Check(c.addProblem)
	c.checkPrometheus()
	c.checkTracing()
	if err := c.Server.Guard(nil).Check(); err != nil {
		c.addProblem("server.adminToken", "%q: %s", "server.adminToken", err)
	}
	c.checkClouddriver()
	c.Secrets.Check(c.addProblem)
	if _, err := keypair.ParseClientAuth(c.Server.SSL.ClientAuth); err != nil {
		c.addProblem("server.ssl.clientAuth", "%q: %s", "server.ssl.clientAuth", err)
	}
	if c.Server.SSL.Enabled && c.Server.SSL.CertFile == "" {
		c.addProblem("server.ssl.enabled", "%q is true, but %q is missing%s", "server.ssl.enabled", "server.ssl.certFile", c.keyStoreHint())
	}
	if c.Outbox.MaxBytes < 64<<10 {
		c.addProblem("outbox.maxBytes", "%q must be at least 64KiB because a large object must fit, got %s", "outbox.maxBytes", c.Outbox.MaxBytes)
	}
	c.checkOperations()
	for path, n := range map[string]int{
		"timeoutSeconds": c.TimeoutSeconds, "kubernetes.verifyIntervalSeconds": c.Kubernetes.VerifyIntervalSeconds,
		"kubernetes.cacheGroupSize": c.Kubernetes.CacheGroupSize, "kubernetes.cacheGroupDelayMs": c.Kubernetes.CacheGroupDelayMs,
		"kubernetes.maxFeedsPerAccount": c.Kubernetes.MaxFeedsPerAccount,
		"tasks.totalBudget":             c.Tasks.TotalBudget, "tasks.budgetPerAccount": c.Tasks.BudgetPerAccount,
	} {
		c.checkNotNegative(path, n)
	}
}

func (c *Config) checkPrometheus() {
	settings.CheckMaxAccounts(c.Prometheus.MaxAccounts, c.addProblem)
	c.Prometheus.SSL.Check("prometheus.ssl", "", settings.Reporter{Problem: c.addProblem, Notice: c.addNotice})
}

func (c *Config) checkOperations() {
	for path, n := range map[string]*int{
		"kubernetes.retries.maxRetries": c.Kubernetes.Retries.MaxRetries, "kubernetes.retries.backOffMs": c.Kubernetes.Retries.BackOffMs,
	} {
		if n != nil {
			c.checkNotNegative(path, *n)
		}
	}
	c.checkOneOf("kubernetes.fieldValidation", c.Kubernetes.FieldValidation, "strict", "warn", "ignore")
	ssa := c.Kubernetes.ServerSideApply
	c.checkApplyMode("kubernetes.serverSideApply.", ssa.Enabled, ssa.ClearManagedFields)
	for i, k := range ssa.Kinds {
		path := fmt.Sprintf("kubernetes.serverSideApply.kinds[%d]", i)
		c.checkApplyMode(path+".", k.Enabled, k.ClearManagedFields)
		if k.Kind == "" {
			c.addProblem(path, "%q is missing or empty", path+".kind")
		}
	}
}

func (c *Config) checkApplyMode(path, enabled, clearManagedFields string) {
	c.checkOneOf(path+"enabled", enabled, "always", "never", "allowed")
	c.checkOneOf(path+"clearManagedFields", clearManagedFields, "always", "never", "allowed")
}

func (c *Config) checkClouddriver() {
	cd := c.Clouddriver
	if host, _, err := net.SplitHostPort(cd.GRPC); err != nil || host == "" {
		c.addProblem("clouddriver.grpc", "%q must be a host and a port, for example spin-clouddriver-grpc:9091, got %q", "clouddriver.grpc", cd.GRPC)
	}
	if cd.TLS.ClientKeyFile != "" && cd.TLS.ClientCertFile == "" {
		c.addProblem("clouddriver.tls.clientKeyFile", "%q is set, but %q is missing", "clouddriver.tls.clientKeyFile",
			"clouddriver.tls.clientCertFile")
	}
	if cd.Insecure != nil && *cd.Insecure && cd.TLS != (TLS{}) {
		c.addNotice("clouddriver.insecure",
			"clouddriver.insecure is true: the agent connects without TLS and ignores the settings below clouddriver.tls")
	}
	c.checkAuth(cd.Auth)
	c.checkNotNegative("clouddriver.keepAliveHeartbeatSeconds", cd.KeepAliveHeartbeatSeconds)
	c.checkNotNegative("clouddriver.keepAliveTimeOutSeconds", cd.KeepAliveTimeOutSeconds)
	c.checkBackoff("clouddriver.backoff.", cd.Backoff)
}

func (c *Config) checkPort(path string, port int) {
	if port < 0 || port > 65535 {
		c.addProblem(path, "%q must be a port from 0 to 65535, got %d", path, port)
	}
}

func (c *Config) checkNotNegative(path string, n int) {
	if n < 0 {
		c.addProblem(path, "%q must not be negative, got %d", path, n)
	}
}

// checkOneOf checks that value is one of the allowed words, ignoring case.
func (c *Config) checkOneOf(path, value string, allowed ...string) {
	if !slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, value) }) {
		c.addProblem(path, "%q must be one of %s, got %q", path, strings.Join(allowed, ", "), value)
	}
}

// keyStoreHint says what to do with the keystore of a file that was copied from Clouddriver.
func (c *Config) keyStoreHint() string {
	if !c.Report.HasUnknownKey("server.ssl.keyStore") {
		return ""
	}
	return ": server.ssl.keyStore cannot be read, because only Java reads keystores: convert it to PEM with openssl pkcs12"
}

// addProblem adds an error about a setting.
func (c *Config) addProblem(path, format string, args ...any) {
	c.Report.Add(c.Report.PositionOf(path), path, format, args...)
}

// addNotice adds a notice about a setting that is valid but unusual.
func (c *Config) addNotice(path, text string) {
	c.notices = append(c.notices, fmt.Sprintf("%s: %s", c.Report.PositionOf(path), text))
}
