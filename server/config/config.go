// Package config reads and validates vedette-server.yml. It accepts the keys that the Scale Agent's
// plugin and Clouddriver use for gRPC, the cache and the database.
package config

import (
	"slices"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/configload"
	"github.com/vedette-io/vedette/internal/secret/engines"
	"github.com/vedette-io/vedette/internal/settings"
	"github.com/vedette-io/vedette/server/accounts"
	"github.com/vedette-io/vedette/server/agentserver"
	"github.com/vedette-io/vedette/server/ingest"
)

// Config is the configuration of a server. Load returns one.
type Config struct {
	// Directory of the embedded database. It needs about 1 KB per object.
	DataDir string `config:"dataDir" default:"/var/lib/vedette"`

	Server      Server      `config:"server"`
	GRPC        GRPC        `config:"grpc"`
	SQL         SQL         `config:"sql"`
	Cache       Cache       `config:"cache"`
	Accounts    Accounts    `config:"accounts"`
	Agents      Agents      `config:"agents"`
	Credentials Credentials `config:"credentials"`
	Fiat        Fiat        `config:"services.fiat"`
	Front50     Front50     `config:"services.front50"`
	Upstream    Upstream    `config:"upstream"`
	Tasks       Tasks       `config:"tasks"`
	Manifests   Manifests   `config:"manifests"`
	Jobs        Jobs        `config:"jobs"`
	History     History     `config:"history"`
	Artifacts   Artifacts   `config:"artifacts"`
	// Store of large artifacts.
	ArtifactStore ArtifactStore    `config:"artifact-store,alias=artifactStore"`
	Logging       settings.Logging `config:"logging"`
	// Where references to secrets (encrypted: and encryptedFile:) lead.
	Secrets    engines.Settings `config:"secrets"`
	Pprof      Pprof            `config:"pprof"`
	Tracing    Tracing          `config:"tracing"`
	Prometheus Prometheus       `config:"prometheus"`
	// A port without client certificates for probes and metrics.
	Management  settings.Management `config:"management"`
	Kubesvc     Kubesvc             `config:"kubesvc"`
	Spring      settings.Spring     `config:"spring"`
	Clouddriver                     // Clouddriver's other groups

	// Path is the file that was read first; empty if none was found.
	Path string

	configload.Loaded
	database DatabaseURL
	replicas []string // URLs with passwords
	shards   []ShardDatabase
	location location
}

// InactiveSettings lists the keys that are set to something other than their default and have no effect,
// as "kubesvc.dynamicAccounts".
func (c *Config) InactiveSettings() []configfile.Inactive {
	return configfile.InactiveSettings(c, c.Report, settings.Reasons(reasons))
}

// Unused returns the keys that are set but have no effect in this version, with the reasons.
func (c *Config) Unused() []string { return c.Report.Unused(settings.Reasons(reasons)) }

// Notices are facts about the configuration that an operator should know and
// that are not errors.
func (c *Config) Notices() []string {
	return c.Report.Hide(slices.Concat(c.Report.Notices, configfile.WithoutEffect(c, c.Report, c.switches()),
		nonEmpty(c.RESTListen().Notice, c.GRPCListen().Notice, c.MetricsListen().Notice)))
}

// Warnings are settings that weaken security, or that do not do what their value says.
func (c *Config) Warnings() []string {
	return c.Report.Hide(nonEmpty(c.RESTListen().Warning, c.GRPCListen().Warning, c.MetricsListen().Warning, c.managementWarning(),
		c.Kubesvc.redisWarning(), c.Kubesvc.verificationWarning(), c.fileWarning()))
}

func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return s == "" })
}

// Effective lists all settings with their effective values, secrets masked.
func (c *Config) Effective() []configfile.KeyValue { return configfile.Effective(c, c.Report) }

// Cache selects the kinds that agents report.
type Cache struct {
	// Kinds to cache in accounts that do not set kinds. Each kind costs one watch per account, and about 1 KB of
	// database per object. Operations work on all kinds.
	Kinds []string `config:"kinds" default:"ReplicaSet,Service,Ingress,DaemonSet,Deployment,Pod,StatefulSet,Job,CronJob,NetworkPolicy,Namespace,CustomResourceDefinition"`
	// Kinds not to cache in such accounts: names as in kinds, with or without a group.
	OmitKinds []string `config:"omitKinds"`
	// Show only applications that Front50 knows in Spinnaker's views, as kubernetes.cache.checkApplicationInFront50
	// does in Clouddriver. Needs services.front50.baseUrl. Until Front50 answers, all applications are shown.
	CheckApplicationInFront50 bool `config:"checkApplicationInFront50" default:"false"`
	// Cache all kinds but Secrets and Events in such accounts, whatever kinds says. Cannot be combined with omitKinds:
	// set omitKinds of the accounts.
	All bool `config:"all" default:"false"`
}

// Accounts configures how long accounts are kept.
type Accounts struct {
	accounts.Config
	// Remove the account's objects with it. Otherwise the objects stay hidden, and show again when an agent of
	// the same cluster registers the account.
	RemoveData bool `config:"removeData" default:"true"`
}

// Agents limits what agents cost the server.
type Agents struct {
	Server agentserver.Config `config:",inline"`
	Ingest ingest.Config      `config:",inline"`
	// Memory for everything else that agents make the server hold: 64 KiB for each agent, 1 MiB for each that
	// sends changes, and large objects and answers in transit. If it is used up, the largest answer of the host that uses
	// the most is lost, or its largest agent must reconnect. One answer may have two fifths of it, and at most 48 MiB. 0 means
	// a fifth of the memory that the server may use, and at least 80MiB.
	MemoryBytes int64 `config:"memoryBytes" format:"bytes" default:"0"`
}

func (a Agents) check(c configfile.Checker) {
	if a.Ingest.MaxBytes < int64(a.Server.CreditBytes) {
		c.Problem("ingestBytes", " must be at least agents.creditBytes, got %s", configfile.Bytes(a.Ingest.MaxBytes))
	}
	if a.MemoryBytes != 0 && a.MemoryBytes < 80<<20 {
		c.Problem("memoryBytes", " must be 0, or at least 80MiB because one large object may take that much, got %s", configfile.Bytes(a.MemoryBytes))
	}
}

// Credentials configures how Spinnaker sees accounts.
type Credentials struct {
	// Account types that make an account a primary account.
	PrimaryAccountTypes []string `config:"primaryAccountTypes" default:"default"`
	// Environments in which Spinnaker asks for confirmation before destructive actions.
	ChallengeDestructiveActionsEnvironments []string `config:"challengeDestructiveActionsEnvironments" default:"default"`
	// New accounts are visible at once; nothing polls for them.
	Poller configfile.Ignored `config:"poller,ignored"`
}
