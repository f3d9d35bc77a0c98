package main

import (
	"log/slog"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/internal/keypair/grpctls"
	"github.com/vedette-io/vedette/internal/version"
)

// newAgentConfig converts the configuration file to the agent's configuration. If the files of
// clouddriver.tls cannot be read, it returns the rest with an error.
func newAgentConfig(cfg *config.Config, log *slog.Logger) (agent.Config, error) {
	uplinkConfig, err := newUplinkConfig(cfg, log)
	settings := agent.Config{
		Uplink: uplinkConfig,
		Redact: redact.Config{
			Annotations: cfg.Redact.Annotations, ConfigMapKeys: cfg.Redact.ConfigMapKeys, Environment: cfg.Redact.Environment,
			SecretAnnotations: cfg.Redact.SecretAnnotations,
		},
		OutboxBytes:    int(cfg.Outbox.MaxBytes),
		ConnectOptions: kube.Options{WipeTLSBuffers: cfg.Kubernetes.WipeTLSBuffers, HeaderTimeout: cfg.Timeout()},
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
	interval := cfg.Kubernetes.VerifyInterval()
	if interval == 0 {
		interval = -1 // never
	}
	return watch.Config{Limiter: watch.NewLimiter(newBudget(cfg)), VerifyInterval: interval,
		MaxFeeds: cfg.Kubernetes.MaxFeedsPerAccount}
}

func newBudget(cfg *config.Config) watch.Budget {
	budget := watch.Budget{}.AtMost(cfg.Tasks.TotalBudget, cfg.Tasks.BudgetPerAccount)
	budget.GroupSize, budget.GroupDelay = cfg.Kubernetes.CacheGroupSize, cfg.Kubernetes.CacheGroupDelay()
	return budget
}

func newUplinkConfig(cfg *config.Config, log *slog.Logger) (uplink.Config, error) {
	hostname, err := os.Hostname()
	if err != nil {
		hostname = string(cfg.AgentID)
	}
	uplinkConfig := uplink.Config{
		Target: cfg.Clouddriver.GRPC, Creds: insecure.NewCredentials(), Agent: cfg.AgentID,
		Version: version.String(), Hostname: hostname, ZoneID: cfg.ZoneID, Pauses: newPauses(cfg),
	}
	if cfg.Clouddriver.NoProxy {
		uplinkConfig.DialOptions = append(uplinkConfig.DialOptions, grpc.WithNoProxy())
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

// newPauses converts the settings for pauses between connections. Jitter is a share below and above a
// pause, as in gRPC.
func newPauses(cfg *config.Config) uplink.Pauses {
	pauses := uplink.Pauses{Shortest: cfg.Kubernetes.ReconnectTimeout()}
	if b := cfg.Clouddriver.Backoff; b.IsSet() {
		pauses.First, pauses.Max, pauses.Multiplier = b.Base(), b.Max(), b.Factor()
		pauses.Low, pauses.High = 1-b.Share(), 1+b.Share()
	}
	return pauses
}

// newOperateConfig converts the settings for operations. maxRetries: 0 disables retries,
// because zero means no limit in operate.RetryPolicy.
func newOperateConfig(k config.Kubernetes) operate.Config {
	mode := apply.Mode{Enabled: apply.Policy(k.ServerSideApply.Enabled),
		ClearManagedFields: apply.Policy(k.ServerSideApply.ClearManagedFields)}
	for _, kind := range k.ServerSideApply.Kinds {
		mode.Kinds = append(mode.Kinds, apply.KindMode{Kind: kind.Kind,
			Enabled: apply.Policy(kind.Enabled), ClearManagedFields: apply.Policy(kind.ClearManagedFields)})
	}
	retries := operate.RetryPolicy{Disabled: !k.Retries.Enabled, AnyError: k.Retries.RetryAnyError, ErrorSubstrings: k.Retries.RetryableErrors}
	if maxRetries := k.Retries.MaxRetries; maxRetries != nil {
		retries.MaxRetries, retries.Disabled = *maxRetries, retries.Disabled || *maxRetries == 0
	}
	if backOffMs := k.Retries.BackOffMs; backOffMs != nil {
		retries.Backoff = time.Duration(*backOffMs) * time.Millisecond
	}
	return operate.Config{ServerSideApply: mode, Retry: retries, FieldValidation: vedette.FieldValidation(strings.ToLower(k.FieldValidation))}
}

func newAccount(cfg *config.Config, a config.Account) agent.Account {
	account := agent.Account{
		Name: a.AccountName(),
		Access: kube.Access{
			KubeconfigFile: a.KubeconfigFile, KubeconfigContents: []byte(a.KubeconfigContents.Reveal()), Context: a.Context,
			InCluster: a.ServiceAccount, ServiceAccountDir: os.Getenv("VEDETTE_SERVICE_ACCOUNT_DIR"), Insecure: a.Insecure, NoProxy: a.NoProxy ||
				cfg.Kubernetes.NoProxy,
			OAuthServiceAccount: a.OAuthServiceAccount, OAuthScopes: a.OAuthScopes,
		},
		Selection: watch.Selection{
			Kinds: a.Kinds, OmitKinds: a.OmitKinds, Namespaces: a.Namespaces, OmitNamespaces: a.OmitNamespaces,
			OnlyNamespaced: a.OnlyNamespacedResources, OnlySpinnakerManaged: a.OnlySpinnakerManaged,
		},
		Properties: a.Properties(),
	}
	for _, c := range a.CustomResourceDefinitions {
		account.Selection.CustomResources = append(account.Selection.CustomResources,
			watch.CustomResource{Kind: c.Kind, Namespaced: !strings.EqualFold(c.Scope, "Cluster")})
	}
	return account
}
