// Package config reads and validates vedette-server.yml. It accepts the keys that the Scale Agent's
// plugin and Clouddriver use for gRPC, the cache and the database.
package config

import (
	"slices"
	"time"

	"github.com/vedette-io/vedette/internal/configfile"
)

// Config holds all settings of the server. Create it with Load.
type Config struct {
	// Folder for the embedded database.
	DataDir string `config:"dataDir" default:"/var/lib/vedette"`

	Server      Server      `config:"server"`
	GRPC        GRPC        `config:"grpc"`
	SQL         SQL         `config:"sql"`
	Cache       Cache       `config:"cache"`
	Accounts    Accounts    `config:"accounts"`
	Agents      Agents      `config:"agents"`
	Credentials Credentials `config:"credentials"`
	Fiat        Fiat        `config:"services.fiat"`
	Tasks       Tasks       `config:"tasks"`
	Manifests   Manifests   `config:"manifests"`
	Jobs        Jobs        `config:"jobs"`
	Logging     Logging     `config:"logging"`
	Kubesvc     Kubesvc     `config:"kubesvc"`
	Spring      Spring      `config:"spring"`
	Clouddriver             // Clouddriver's other groups

	// Path is the file that was read; "" if none was found.
	Path string

	report   *configfile.Report
	database DatabaseURL
	notices  []string
}

// Unused returns each key that is set and has no effect in this version, as
// "vedette-server.yml:7:3: redis".
func (c *Config) Unused() []string { return c.report.Unused() }

// Notices returns what an operator should know about the configuration, without errors.
func (c *Config) Notices() []string {
	return slices.Concat(c.notices, nonEmpty(c.RESTListen().Notice, c.GRPCListen().Notice))
}

// Warnings returns settings that weaken security.
func (c *Config) Warnings() []string {
	return nonEmpty(c.RESTListen().Warning, c.GRPCListen().Warning)
}

func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return s == "" })
}

// Effective returns all effective settings, with secrets masked.
func (c *Config) Effective() []configfile.KeyValue { return configfile.Effective(c, c.report) }

// Cache selects the kinds of objects that agents report.
type Cache struct {
	// Kinds to cache where an account says nothing else.
	Kinds []string `config:"kinds" default:"ReplicaSet,Service,Ingress,DaemonSet,Deployment,Pod,StatefulSet,Job,CronJob,NetworkPolicy,Namespace,CustomResourceDefinition"`
	// Kinds not to cache where an account says nothing else, by the names that stand in kinds, with or without a group.
	OmitKinds []string `config:"omitKinds"`
	// Cache all kinds.
	All bool `config:"all,unused" default:"false"`
}

// Accounts configures the lifetime of accounts.
type Accounts struct {
	// How long an account stays after its last agent has gone. Only time counts in which this server runs and its database answers, so that no outage takes accounts away.
	GracePeriod configfile.Duration `config:"gracePeriod" default:"10m"`
	// Remove its objects with it. Otherwise they are kept where nobody sees them, and are there again when an agent of the same cluster registers the account anew.
	RemoveData bool `config:"removeData" default:"true"`
}

// Grace returns GracePeriod.
func (a Accounts) Grace() time.Duration { return time.Duration(a.GracePeriod) }

// Agents configures the connections of agents.
type Agents struct {
	// Seconds between two signs of life, in both directions. Three missed ones end a connection.
	HeartbeatSeconds int `config:"pulseSeconds" default:"3"`
	// Bytes of changes that one agent may have on the way unacknowledged.
	CreditBytes configfile.Bytes `config:"creditBytes" default:"4MiB"`
	// Bytes of changes that the server holds for all agents together before they are stored; for those of one host, a quarter of it.
	IngestBytes configfile.Bytes `config:"ingestBytes" default:"64MiB"`
	// Bytes that all agents together may make the server hold besides: 32 KiB for each that is connected, 1 MiB for each that sends changes, and large objects and answers on their way. Where there is no more, agents of the host that takes the most must connect again. 0 stands for a quarter of the memory that the server may use, and at least 128MiB.
	MemoryBytes configfile.Bytes `config:"memoryBytes" default:"0"`
}

// HeartbeatInterval returns the interval between two heartbeats.
func (a Agents) HeartbeatInterval() time.Duration {
	return time.Duration(a.HeartbeatSeconds) * time.Second
}

// Credentials configures how Spinnaker sees accounts.
type Credentials struct {
	// Values of accountType that make an account a primary one.
	PrimaryAccountTypes []string `config:"primaryAccountTypes" default:"default"`
	// Values of environment in which Spinnaker asks before it destroys.
	ChallengeDestructiveActionsEnvironments []string `config:"challengeDestructiveActionsEnvironments" default:"default"`
	// How often Clouddriver looked for new accounts: they are there at once now.
	Poller configfile.Ignored `config:"poller,unused"`
}

// Logging configures the log, which goes to standard output.
type Logging struct {
	// Least severe level to log: trace, debug, info, warn, error, fatal or panic, in any case.
	Level string `config:"level" default:"info" env:"LOG_LEVEL"`
	// text or json.
	Format string `config:"format" default:"text"`
}

// Spring holds keys of Spring that must not be ignored.
type Spring struct {
	Config struct {
		// Another file to read: not supported, and refused, as its settings would be missing.
		Import string `config:"import"`
	} `config:"config"`
}
