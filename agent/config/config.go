// Package config is what a user writes in armory-agent.yml. It knows every key
// of the predecessor's agent, with the predecessor's defaults, and those that
// Vedette adds. Keys that have no effect yet are accepted and told of by
// Config.Unused.
//
// One bad account never harms the good ones: it is left out and told of in
// Config.Refused. What is wrong anywhere else refuses the whole file.
package config

import (
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
)

// Config is all that an agent can be told. Make one with Load.
type Config struct {
	// Name of this agent, unique among all that connect. By default HOSTNAME, which in a pod is the pod's name; else the host's name and a random suffix.
	AgentID vedette.AgentID `config:"agentId"`
	// Zone of this agent: agents of one zone can reach the same clusters. By default the Deployment's name and the namespace.
	ZoneID string `config:"zoneId"`
	// Longest time in seconds to wait for an answer of an API server; 0 waits for ever.
	TimeoutSeconds int `config:"timeoutSeconds,unused" default:"0"`
	// Spread connections over servers by the agent: the servers do that now.
	BalanceConnection bool `config:"balanceConnection,unused" default:"false"`
	// Namespace of the servers among which balanceConnection chose.
	ClouddriverNamespace string `config:"clouddriverNamespace,unused"`
	// DNS domain of the servers among which balanceConnection chose.
	DomainName string `config:"domainName,unused"`
	// Engines that resolve encrypted: references. Such a reference is refused until they exist.
	Secrets configfile.Ignored `config:"secrets,unused"`

	Clouddriver Clouddriver `config:"clouddriver"`
	Kubernetes  Kubernetes  `config:"kubernetes"`
	Redact      Redact      `config:"redact"`
	Outbox      Outbox      `config:"outbox"`
	Server      Server      `config:"server"`
	Prometheus  Prometheus  `config:"prometheus,unused"`
	Pprof       Pprof       `config:"pprof,unused"`
	Logging     Logging     `config:"logging"`
	Tasks       Tasks       `config:"tasks"`

	DynamicAccounts DynamicAccounts `config:"dynamicAccounts,unused"`
	Local           Local           `config:"local,unused"`
	Hub             Hub             `config:"hub,unused"`
	Spring          Spring          `config:"spring"`

	// RejectedAccounts are the accounts that are not in Kubernetes.Accounts, and why.
	RejectedAccounts []RejectedAccount
	// Path is the file that was read; empty where none was found.
	Path string

	report      *configfile.Report
	allAccounts []Account // all accounts, refused ones too, so that indexes are those of the file
	notices     []string
}

// Unused tells of each key that was set and has no effect in this version, as
// "armory-agent.yml:7:3: hub.auth.token".
func (c *Config) Unused() []string { return c.report.Unused() }

// Notices are things about the configuration that an operator should know and
// that are no errors.
func (c *Config) Notices() []string { return c.notices }

// Effective lists all settings as they count, secrets masked. Refused accounts
// are among them.
func (c *Config) Effective() []configfile.KeyValue {
	all := *c
	all.Kubernetes.Accounts = c.allAccounts
	return configfile.Effective(&all, c.report)
}

// Kubernetes are the clusters to watch and how to treat their API servers.
type Kubernetes struct {
	// Ignore HTTP_PROXY, HTTPS_PROXY and NO_PROXY towards all clusters.
	NoProxy bool `config:"noProxy" default:"false"`
	// Milliseconds to wait before a lost connection to the server is made anew, at the least.
	ReconnectTimeoutMs int `config:"reconnectTimeoutMs,unused" default:"5000"`
	// Accounts that start to watch together; 0 for all at once.
	CacheGroupSize int `config:"cacheGroupSize,unused" default:"0"`
	// Milliseconds between two such groups.
	CacheGroupDelayMs int `config:"cacheGroupDelayMs,unused" default:"0"`
	// Take accounts from the server only, none from this file.
	DynamicAccountsOnly bool `config:"dynamicAccountsOnly,unused" default:"false"`
	// Clouddriver's switch for the provider, which may have been copied along.
	Enabled         bool            `config:"enabled,unused" default:"true"`
	Retries         Retries         `config:"retries"`
	ServerSideApply ServerSideApply `config:"serverSideApply"`
	// What becomes of fields of a manifest that the API server does not know: strict refuses the manifest, as kubectl does; warn drops them, and tells of them whoever asked (Spinnaker shows no warnings); ignore drops them. The API server's own merge (serverSideApply) takes none of them, whatever stands here.
	FieldValidation string `config:"fieldValidation" default:"strict"`
	// Zero the buffers of Go's crypto/tls that held the metadata of Secrets. Annotations in it may contain the data of a Secret, and without this setting parts of them stay in the agent's memory until something overwrites them. The setting relies on unexported fields of crypto/tls: an agent that is built with a Go release that changes them does not read Secrets.
	WipeTLSBuffers bool `config:"wipeTLSBuffers" default:"false"`
	// The clusters. They may also be copied from Clouddriver's kubernetes.accounts.
	Accounts []Account `config:"accounts"`
}

// ReconnectTimeout is ReconnectTimeoutMs.
func (k Kubernetes) ReconnectTimeout() time.Duration { return milliseconds(k.ReconnectTimeoutMs) }

// Redact is what may not leave the cluster beside the data of Secrets, which
// never does. All entries are globs: * stands for any run of characters.
type Redact struct {
	// Annotations whose values are cut.
	Annotations []string `config:"annotations"`
	// Keys of ConfigMaps whose values are cut.
	ConfigMapKeys []string `config:"configMapKeys"`
	// Names of environment variables whose values are cut from containers.
	Environment []string `config:"environment"`
	// Keys of annotations that Secrets keep, beside those of Spinnaker, Helm and others that hold names only. No other annotation of a Secret leaves, and none that is longer than 256 bytes or could hold a manifest.
	SecretAnnotations []string `config:"secretAnnotations"`
}

// Outbox holds what the server has not acknowledged.
type Outbox struct {
	// Memory that unacknowledged changes may take. When it is full the agent stops to read from API servers.
	MaxBytes configfile.Bytes `config:"maxBytes" default:"8MiB"`
}

// Tasks bound how much is listed at once, which is what takes memory at start.
type Tasks struct {
	// Lists of one kind each that may run at once over all accounts; 0 for no limit.
	TotalBudget int `config:"totalBudget,unused" default:"1000"`
	// The same for each account.
	BudgetPerAccount int `config:"budgetPerAccount,unused" default:"50"`
	// Milliseconds between looks at the queue: there is none to look at.
	QueueCheckFrequencyMs int `config:"queueCheckFrequencyMs,unused" default:"2000"`
}

// Spring are keys of Spring that must not be passed over.
type Spring struct {
	Config struct {
		// Another file to read: not supported, and refused, as its accounts would be missing.
		Import string `config:"import"`
	} `config:"config"`
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }
func seconds(n int) time.Duration      { return time.Duration(n) * time.Second }
