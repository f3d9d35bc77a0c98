package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/version"
	"github.com/vedette-io/vedette/server"
	"github.com/vedette-io/vedette/server/artifacts"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/config"
	"github.com/vedette-io/vedette/server/discover"
	"github.com/vedette-io/vedette/server/front50"
	"github.com/vedette-io/vedette/server/metrics"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/tables"
)

// storeConfig returns which databases there are.
func storeConfig(cfg *config.Config, log *slog.Logger) sqldb.Config {
	store := sqldb.Config{URL: cfg.Database().Reveal(), Replicas: cfg.Replicas(), Log: log}
	for _, s := range cfg.Shards() {
		store.Shards = append(store.Shards, sqldb.Shard{Name: s.Name, URL: s.URL.Reveal(), Replicas: s.Replicas})
	}
	return store
}

// newServerConfig converts the configuration file to the server's configuration.
func newServerConfig(cfg *config.Config, log *slog.Logger) (server.Config, error) {
	hostname, err := os.Hostname()
	if err != nil {
		return server.Config{}, fmt.Errorf("get the host name: %w", err)
	}
	available := int64(min(availableMemory(), math.MaxInt64))
	artifactConfig := cfg.ArtifactConfig()
	artifactConfig.Memory = available
	artifactAccounts := artifacts.New(artifactConfig)
	settings := server.Config{
		ID: vedette.ServerID(cmp.Or(cfg.Server.ID, hostname)), Host: hostname, Version: version.String(), DataDir: cfg.DataDir,
		REST: cfg.RESTListen().Address, RESTHosts: cfg.Server.Hosts,
		Memory: available, ReadBytes: cfg.Server.ReadBytes, GRPC: cfg.GRPCListen().Address,
		Store:    storeConfig(cfg, log),
		Accounts: cfg.Accounts.Config, Ingest: cfg.Agents.Ingest, AgentServer: cfg.Agents.Server,
		Dispatch: cfg.History.Config, Tasks: cfg.Tasks.Config,
		Clouddriver: clouddriver.Config{
			Reloadable:    &clouddriver.Reloadable{},
			OmitPodStatus: !cfg.Jobs.DetailedPodStatus,
			Artifacts:     artifactAccounts,
		},
	}
	settings.Accounts.KeepData = !cfg.Accounts.RemoveData
	settings.AgentServer.Kinds, settings.AgentServer.Projections = reloadableSettings(cfg).Kinds, tables.Projections()
	settings.AgentServer.MemoryBytes = agentMemory(cfg.Agents, uint64(available))
	settings.Dispatch.AgentWait = cfg.Kubesvc.Operations.AgentWait()
	settings.Tasks.Output, settings.Tasks.Rules = cfg.Tasks.OutputPolicy(), cfg.Manifests.Rules()
	settings.Tasks.ArtifactStore = artifactAccounts
	if cfg.Fiat.Enabled {
		settings.Fiat = &cfg.Fiat.FiatConfig
	}
	settings.Clouddriver.Reloadable.SetCredentialRules(reloadableSettings(cfg).Credentials)
	if client := cfg.Front50.Client(); client != nil {
		settings.Clouddriver.Projects = client
		if cfg.Cache.CheckApplicationInFront50 {
			settings.Applications = front50.NewApplications(client, log)
			settings.Clouddriver.Applications = settings.Applications
		}
	}
	settings.Discovery = cfg.Discovery(os.Getenv)
	settings.Balance.IsWithinServer = cfg.Kubesvc.StaysAtServer()
	if cfg.SharesDatabase() {
		settings.Peers = &server.PeersConfig{Address: cfg.PeersListen(), Advertise: cfg.Server.Peers.Advertise,
			RESTOperations: cfg.Server.Peers.RESTOperations}
	}
	if settings.Discovery.Mode == discover.ModeKubernetes {
		if err := settings.Discovery.Kubernetes.Validate(); err != nil {
			return settings, fmt.Errorf("kubesvc.cluster-kubernetes: %w", err)
		}
	}
	settings.Upstream, err = cfg.Upstream.UpstreamConfig()
	if err != nil {
		return settings, err
	}
	settings.RESTTLS, err = cfg.Server.SSL.TLSConfig()
	if err != nil {
		return settings, err
	}
	if guard := cfg.Server.Guard(log); guard.HasToken() {
		settings.AdminToken = guard
	}
	settings.TrustedCallers, err = readlimit.ParseTrustedCallers(cfg.Server.TrustedCallers)
	if err != nil {
		return settings, fmt.Errorf("server.trustedCallers: %w", err)
	}
	settings.GRPCTLS, err = cfg.GRPC.TLSConfig()
	if err != nil {
		return settings, err
	}
	if err = setManagement(&settings, cfg, log); err != nil {
		return settings, err
	}
	err = setMetrics(&settings, cfg)
	return settings, err
}

func setManagement(settings *server.Config, cfg *config.Config, log *slog.Logger) (err error) {
	settings.Management.Address = cfg.Management.ListenAddress()
	if settings.Management.Address == "" {
		return nil
	}
	settings.Management.Guard = operators(cfg, log)
	settings.Management.TLS, err = cfg.Management.Server.SSL.TLSConfig()
	if err != nil {
		return fmt.Errorf("management.server.ssl: %w", err)
	}
	return nil
}

func setMetrics(settings *server.Config, cfg *config.Config) (err error) {
	settings.Metrics, settings.MetricsAddress = metrics.New(version.String()), cfg.MetricsListen().Address
	settings.Metrics.Accounts.Limit = cfg.Prometheus.MaxAccounts
	if settings.MetricsAddress == "" {
		return nil
	}
	settings.MetricsTLS, err = cfg.Prometheus.SSL.TLSConfig()
	if err != nil {
		return fmt.Errorf("prometheus.ssl: %w", err)
	}
	return nil
}

// cachedKinds returns the kinds to cache without those to omit, and those that are always cached.
func cachedKinds(c config.Cache, always []string) []string {
	if c.All {
		return []string{"all"}
	}
	kinds := slices.DeleteFunc(slices.Clone(c.Kinds), func(kind string) bool {
		return slices.ContainsFunc(c.OmitKinds, func(omitted string) bool { return coversKind(omitted, kind) })
	})
	for _, kind := range always {
		if !slices.ContainsFunc(kinds, func(k string) bool { return strings.EqualFold(k, kind) }) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// coversKind reports whether omitting one kind omits another. A name without a group means the
// kinds with that name in the API groups of Kubernetes itself.
func coversKind(omitted, kind string) bool {
	o, k := vedette.ParseKind(strings.ToLower(omitted)), vedette.ParseKind(strings.ToLower(kind))
	switch {
	case o.Name != k.Name:
		return false
	case o.Group == "":
		return vedette.IsNativeGroup(k.Group)
	case k.Group == "":
		return vedette.IsNativeGroup(o.Group)
	}
	return o.Group == k.Group
}
