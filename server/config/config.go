// Package config is what a user writes in vedette-server.yml. It takes over what
// the predecessor's plugin and Clouddriver itself were told about gRPC, the
// cache and the database, under the names that they have there.
package config

import (
	"slices"
	"time"

	"github.com/vedette-io/vedette/internal/configfile"
)

// Config is all that a server can be told. Make one with Load.
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
	Clouddriver             // its other groups

	// Path is the file that was read; empty where none was found.
	Path string

	report   *configfile.Report
	database DatabaseURL
	notices  []string
}

// Unused tells of each key that was set and has no effect in this version, as
// "vedette-server.yml:7:3: redis".
func (c *Config) Unused() []string { return c.report.Unused() }

// Notices are things about the configuration that an operator should know and
// that are no errors.
func (c *Config) Notices() []string {
	return slices.Concat(c.notices, nonEmpty(c.RESTListen().Notice, c.GRPCListen().Notice))
}

// Warnings are things about the configuration that leave a door open.
func (c *Config) Warnings() []string {
	return nonEmpty(c.RESTListen().Warning, c.GRPCListen().Warning)
}

func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return s == "" })
}

// Effective lists all settings as they count, secrets masked.
func (c *Config) Effective() []configfile.KeyValue { return configfile.Effective(c, c.report) }

// Cache is which kinds of objects agents report.
type Cache struct {
	// Kinds to cache where an account says nothing else.
	Kinds []string `config:"kinds" default:"ReplicaSet,Service,Ingress,DaemonSet,Deployment,Pod,StatefulSet,Job,CronJob,NetworkPolicy,Namespace,CustomResourceDefinition"`
	// Kinds not to cache where an account says nothing else, by the names that stand in kinds, with or without a group.
	OmitKinds []string `config:"omitKinds"`
	// Cache all kinds.
	All bool `config:"all,unused" default:"false"`
}

// Accounts is the life of an account.
type Accounts struct {
	// How long an account stays after its last agent has gone. Only time counts in which this server runs and its database answers, so that no outage takes accounts away.
	GracePeriod configfile.Duration `config:"gracePeriod" default:"10m"`
	// Remove its objects with it. Otherwise they are kept where nobody sees them, and are there again when an agent of the same cluster registers the account anew.
	RemoveData bool `config:"removeData" default:"true"`
}

// Grace is GracePeriod.
func (a Accounts) Grace() time.Duration { return time.Duration(a.GracePeriod) }

// Agents is how agents are treated.
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

// HeartbeatInterval is PulseSeconds.
func (a Agents) HeartbeatInterval() time.Duration {
	return time.Duration(a.HeartbeatSeconds) * time.Second
}

// Credentials is how accounts are shown to Spinnaker.
type Credentials struct {
	// Values of accountType that make an account a primary one.
	PrimaryAccountTypes []string `config:"primaryAccountTypes" default:"default"`
	// Values of environment in which Spinnaker asks before it destroys.
	ChallengeDestructiveActionsEnvironments []string `config:"challengeDestructiveActionsEnvironments" default:"default"`
	// How often Clouddriver looked for new accounts: they are there at once now.
	Poller configfile.Ignored `config:"poller,unused"`
}

// Logging is what is logged, and how. Lines go to standard output.
type Logging struct {
	// Least severe level to log: trace, debug, info, warn, error, fatal or panic, in any case.
	Level string `config:"level" default:"info" env:"LOG_LEVEL"`
	// text or json.
	Format string `config:"format" default:"text"`
}

// Spring are keys of Spring that must not be passed over.
type Spring struct {
	Config struct {
		// Another file to read: not supported, and refused, as its settings would be missing.
		Import string `config:"import"`
	} `config:"config"`
}
