package main

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/version"
	"github.com/vedette-io/vedette/server"
	"github.com/vedette-io/vedette/server/accounts"
	"github.com/vedette-io/vedette/server/agentserver"
	"github.com/vedette-io/vedette/server/artifacts"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/config"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/front50"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/metrics"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/task"
	"github.com/vedette-io/vedette/server/views"
)

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
		ID: vedette.ServerID(hostname), Host: hostname, Version: version.String(), DataDir: cfg.DataDir,
		REST: cfg.RESTListen().Address, RESTHosts: cfg.Server.Hosts,
		Memory: available, ReadBytes: int64(cfg.Server.ReadBytes), GRPC: cfg.GRPCListen().Address,
		Store:    store.Config{URL: cfg.Database().Reveal(), Log: log},
		Accounts: accounts.Config{Grace: cfg.Accounts.Grace(), KeepData: !cfg.Accounts.RemoveData},
		Ingest:   ingest.Config{MaxBytes: int64(cfg.Agents.IngestBytes)},
		AgentServer: agentserver.Config{
			Heartbeat: cfg.Agents.HeartbeatInterval(), CreditBytes: int(cfg.Agents.CreditBytes),
			Kinds:       liveSettings(cfg).Kinds,
			Projections: views.Projections(),
			MemoryBytes: agentMemory(cfg.Agents, uint64(available)),
		},
		Dispatch: dispatch.Config{AgentWait: cfg.Kubesvc.Operations.AgentWait(), KeepHistory: cfg.History.Retention()},
		Fiat:     cfg.Fiat.AuthorizeConfig(),
		Tasks:    newTaskConfig(cfg, artifactAccounts),
		Clouddriver: clouddriver.Config{
			Live:          &clouddriver.Live{},
			OmitPodStatus: !cfg.Jobs.DetailedPodStatus,
			Artifacts:     artifactAccounts,
		},
	}
	settings.Clouddriver.Live.SetCredentialRules(liveSettings(cfg).Credentials)
	if client := cfg.Front50.Client(); client != nil {
		settings.Clouddriver.Projects = client
		if cfg.Cache.CheckApplicationInFront50 {
			settings.Applications = front50.NewApplications(client, log)
			settings.Clouddriver.Applications = settings.Applications
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
	settings.TrustedCallers, err = readlimit.ParseTrustedCallers(cfg.Server.TrustedCallers)
	if err != nil {
		return settings, fmt.Errorf("server.trustedCallers: %w", err)
	}
	settings.GRPCTLS, err = cfg.GRPC.TLSConfig()
	if err != nil {
		return settings, err
	}
	err = setMetrics(&settings, cfg)
	return settings, err
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

func newTaskConfig(cfg *config.Config, artifactAccounts *artifacts.Accounts) task.Config {
	timeout, deleteTimeout, keep := cfg.Tasks.Durations()
	m := cfg.Manifests
	return task.Config{Timeout: timeout, DeleteTimeout: deleteTimeout, Retention: keep, MaxTasks: cfg.Tasks.MaxTasks,
		Output:        taskOutput(cfg.Tasks),
		ArtifactStore: artifactAccounts,
		Rules:         manifest.Rules{SkipAppLabels: !m.AppLabels, ManagedBySuffix: m.ManagedBySuffix, MatchNameOnly: m.MatchNameOnly()}}
}

func taskOutput(t config.Tasks) task.OutputPolicy {
	switch {
	case !t.PersistOutput:
		return task.OutputNone
	case t.PersistOutputForAllAccounts:
		return task.OutputAll
	}
	return task.OutputDebug
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
