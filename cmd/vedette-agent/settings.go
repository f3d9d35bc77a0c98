package main

import (
	"log/slog"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/operate/request"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/agent/watch/queue"
	"github.com/vedette-io/vedette/internal/keypair/grpctls"
	"github.com/vedette-io/vedette/internal/version"
)

// newAgentConfig converts the configuration file to the agent's configuration. If the files of
// clouddriver.tls cannot be read, it returns the rest with an error.
func newAgentConfig(cfg *config.Config, log *slog.Logger) (agent.Config, error) {
	uplinkConfig, err := newUplinkConfig(cfg, log)
	settings := agent.Config{
		Uplink:         uplinkConfig,
		Redact:         cfg.Redact.Config,
		OutboxBytes:    cfg.Outbox.MaxBytes,
		ConnectOptions: kube.Options{WipeTLSBuffers: cfg.Kubernetes.WipeTLSBuffers, HeaderTimeout: cfg.Timeout},
		Operate:        newOperateConfig(cfg.Kubernetes),
		Watch:          newWatchConfig(cfg),
		Admin:          cfg.Server.Guard(log),
	}
	for _, a := range cfg.Kubernetes.Accounts {
		settings.Accounts = append(settings.Accounts, newAccount(cfg, a))
	}
	return settings, err
}

func newWatchConfig(cfg *config.Config) watch.Config {
	interval := cfg.Kubernetes.VerifyInterval
	if interval == 0 {
		interval = -1 // never
	}
	return watch.Config{Limiter: watch.NewLimiter(newBudget(cfg)), VerifyInterval: interval,
		MaxFeeds: cfg.Kubernetes.MaxFeedsPerAccount}
}

func newBudget(cfg *config.Config) queue.Budget {
	budget := queue.Budget{}.AtMost(cfg.Tasks.TotalBudget, cfg.Tasks.BudgetPerAccount)
	budget.GroupSize, budget.GroupDelay = cfg.Kubernetes.CacheGroupSize, cfg.Kubernetes.CacheGroupDelay
	return budget
}

func newUplinkConfig(cfg *config.Config, log *slog.Logger) (uplink.Config, error) {
	hostname, err := os.Hostname()
	if err != nil {
		hostname = string(cfg.AgentID)
	}
	uplinkConfig := uplink.Config{
		Target: cfg.Clouddriver.GRPC, Creds: insecure.NewCredentials(), Agent: cfg.AgentID,
		Version: version.String(), Hostname: hostname, ZoneID: cfg.ZoneID, Backoff: cfg.Clouddriver.Backoff,
		ShortestPause: cfg.Kubernetes.ReconnectTimeout,
	}
	if cfg.Clouddriver.NoProxy {
		uplinkConfig.DialOptions = append(uplinkConfig.DialOptions, grpc.WithNoProxy())
	}
	if servers, ok := cfg.BalancedServers(); ok {
		uplinkConfig.Addresses = newServerFinder(servers, log).addresses
	}
	setToken(&uplinkConfig, cfg.Clouddriver.Auth, log)
	if cfg.Clouddriver.IsInsecure() {
		return uplinkConfig, nil
	}
	creds, err := grpctls.NewReloadingCredentials(cfg.Clouddriver.TLSConfig, log)
	if err != nil {
		return uplinkConfig, err
	}
	uplinkConfig.TLS, uplinkConfig.Creds = true, creds
	if cfg.Clouddriver.TLS.ClientCertFile != "" {
		uplinkConfig.Certificate = cfg.Clouddriver.DescribeCertificate
	}
	return uplinkConfig, nil
}

// newOperateConfig converts the settings for operations. maxRetries: 0 disables retries,
// because zero means no limit in request.RetryPolicy.
func newOperateConfig(k config.Kubernetes) operate.Config {
	retries := request.RetryPolicy{Disabled: !k.Retries.Enabled, AnyError: k.Retries.RetryAnyError, ErrorSubstrings: k.Retries.RetryableErrors}
	if maxRetries := k.Retries.MaxRetries; maxRetries != nil {
		retries.MaxRetries, retries.Disabled = *maxRetries, retries.Disabled || *maxRetries == 0
	}
	if backoff := k.Retries.Backoff; backoff != nil {
		retries.Backoff = *backoff
	}
	return operate.Config{ServerSideApply: k.ServerSideApply.Mode, Requests: request.Config{Retry: retries},
		FieldValidation: vedette.FieldValidation(strings.ToLower(k.FieldValidation))}
}

func newAccount(cfg *config.Config, a config.Account) agent.Account {
	return agent.Account{
		Name: a.AccountName(),
		Access: kube.Access{
			KubeconfigFile: a.KubeconfigFile, KubeconfigContents: []byte(a.KubeconfigContents.Reveal()), Context: a.Context,
			InCluster: a.ServiceAccount, ServiceAccountDir: os.Getenv("VEDETTE_SERVICE_ACCOUNT_DIR"), Insecure: a.Insecure, NoProxy: a.NoProxy ||
				cfg.Kubernetes.NoProxy,
			OAuthServiceAccount: a.OAuthServiceAccount, OAuthScopes: a.OAuthScopes, Cloud: a.Cloud,
		},
		Selection:  a.Selection,
		Properties: a.Properties(),
	}
}
