// Package config reads armory-agent.yml. It accepts every key of the
// predecessor's agent, with the predecessor's defaults, and the keys that
// Vedette adds. Config.Unused lists the keys of a file that have no effect.
//
// An invalid account does not affect the valid ones: it is left out, and
// Config.RejectedAccounts has the reason. Any other problem rejects the whole
// file.
package config

import (
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/configload"
	"github.com/vedette-io/vedette/internal/secret/engines"
	"github.com/vedette-io/vedette/internal/settings"
)

// Config is the configuration of an agent. Load returns one.
type Config struct {
	// Name of this agent, unique among all agents of the server. Default: HOSTNAME, which is the pod's name in a
	// pod; otherwise the host name and a random suffix.
	AgentID vedette.AgentID `config:"agentId"`
	// Zone of this agent. Agents of one zone can reach the same clusters. Default: the name of the Deployment (or
	// StatefulSet, or DaemonSet) of the agent's pod and the namespace, joined by an underscore. The agent reads
	// the pod and its ReplicaSet for that; without the right to get them, HOSTNAME gives the Deployment's name.
	ZoneID string `config:"zoneId"`
	// Longest time to wait until an API server begins to answer a list or another short request, in seconds. 0 is
	// for 70 seconds, which is the maximum: API servers abandon such requests after 60. Operations have deadlines of their own.
	Timeout time.Duration `config:"timeoutSeconds" format:"seconds" default:"0" minimum:"0"`
	// Choose one of the servers behind clouddriver.grpc at random for each connection, and another one if it does not answer or
	// has refused the agent, so that agents spread over all servers. Without it, the load balancer or the DNS in between decides.
	BalanceConnection bool `config:"balanceConnection" default:"false"`
	// Namespace of the servers, for balanceConnection: the agent lists the EndpointSlices of the Service there that
	// clouddriver.grpc names, or gets its Endpoints, with the service account of its pod. Without it, or without that right,
	// the agent chooses among the addresses that the host of clouddriver.grpc has in the DNS, as a headless Service has them.
	ClouddriverNamespace string `config:"clouddriverNamespace"`
	// Domain of the cluster, for balanceConnection: with clouddriverNamespace, a Service that clouddriver.grpc names without a
	// namespace is looked up as SERVICE.NAMESPACE.svc.DOMAIN in the DNS.
	DomainName string `config:"domainName" default:"cluster.local"`
	// Where references to secrets (encrypted: and encryptedFile:) lead.
	Secrets engines.Settings `config:"secrets"`

	Clouddriver Clouddriver      `config:"clouddriver"`
	Kubernetes  Kubernetes       `config:"kubernetes"`
	Redact      Redact           `config:"redact"`
	Outbox      Outbox           `config:"outbox"`
	Server      Server           `config:"server"`
	Prometheus  Prometheus       `config:"prometheus"`
	Pprof       Pprof            `config:"pprof"`
	Logging     settings.Logging `config:"logging"`
	Tracing     Tracing          `config:"tracing"`
	Tasks       Tasks            `config:"tasks"`
	// A port without client certificates for probes and metrics.
	Management settings.Management `config:"management"`

	// Accounts come from files: the agent uses a new entry, or a new file that spring.config.import names, within 5 seconds.
	DynamicAccounts configfile.Ignored `config:"dynamicAccounts,ignored,warn"`
	// An undocumented mode of the predecessor.
	Local Local `config:"local,ignored"`
	// The predecessor's cloud service no longer exists. Set clouddriver.grpc to the address of a server.
	Hub    Hub             `config:"hub,ignored"`
	Spring settings.Spring `config:"spring"`

	// RejectedAccounts are the invalid accounts, with the reasons. They are not in Kubernetes.Accounts.
	RejectedAccounts []RejectedAccount
	// Path is the file that was read first; empty if none was found.
	Path string

	configload.Loaded
	pod         Pod       // the agent's, if zoneId has a default; zero otherwise
	allAccounts []Account // also the rejected ones, because problems refer to accounts by their index in the file
	location    location
}

// InactiveSettings returns the keys that are set to something other than their default and have no
// effect, for example "kubernetes.accounts[].liveManifestCalls".
func (c *Config) InactiveSettings() []configfile.Inactive {
	return configfile.InactiveSettings(c.withAllAccounts(), c.Report, allReasons())
}

// Unused returns the keys that are set but have no effect in this version, with the reasons, for example
// "armory-agent.yml:7:3: hub.auth.token: The predecessor's cloud service no longer exists."
func (c *Config) Unused() []string { return c.Report.Unused(allReasons()) }

// Warnings are what will end, or has ended, the connection to the server.
func (c *Config) Warnings() []string {
	if warning := c.Clouddriver.CertificateWarning(time.Now()); warning != "" {
		return []string{warning}
	}
	return nil
}

// Notices returns notices about settings that are valid but unusual.
func (c *Config) Notices() []string {
	return c.Report.Hide(slices.Concat(c.Report.Notices, c.withoutEffect()))
}

// Effective returns all settings with their effective values. Secrets are masked, and
// rejected accounts are included.
func (c *Config) Effective() []configfile.KeyValue {
	return configfile.Effective(c.withAllAccounts(), c.Report)
}

// withAllAccounts returns a copy that includes the rejected accounts, because the
// report refers to accounts by their index in the file.
func (c *Config) withAllAccounts() *Config {
	all := *c
	all.Kubernetes.Accounts = c.allAccounts
	return &all
}

// Kubernetes configures the clusters to watch and the requests to their API
// servers.
type Kubernetes struct {
	// Connect to all clusters directly: ignore HTTP_PROXY, HTTPS_PROXY and NO_PROXY.
	NoProxy bool `config:"noProxy" default:"false"`
	// Shortest time to wait before connecting to the server again, in milliseconds. The pauses of clouddriver.backoff
	// come on top.
	ReconnectTimeout time.Duration `config:"reconnectTimeoutMs" format:"milliseconds" default:"0" minimum:"0" maximum:"3600000"`
	// Number of accounts that start their first lists at the same time; 0 for all. Accounts that continue where
	// they or another agent stopped do not wait.
	CacheGroupSize int `config:"cacheGroupSize" default:"0" minimum:"0"`
	// Pause between two such groups, in milliseconds; 0 for no groups.
	CacheGroupDelay time.Duration `config:"cacheGroupDelayMs" format:"milliseconds" default:"0" minimum:"0"`
	// Most feeds (kinds, or kinds times namespaces) that one account may watch; 0 for 3000. Each takes some 50 KiB
	// and a watch. The account's status says if its configuration selects more.
	MaxFeedsPerAccount int `config:"maxFeedsPerAccount" default:"3000" minimum:"0"`
	// Accounts come from files, not from the server.
	DynamicAccountsOnly bool `config:"dynamicAccountsOnly,ignored,warn" default:"false"`
	// A switch of Clouddriver that users copy along; the agent always watches its accounts.
	Enabled bool `config:"enabled,ignored,warn" default:"true"`
	// Retries of failed requests of operations. With any of these settings except enabled: false, requests that
	// throttling, an overloaded API server or the network failed are retried, unless they could take effect
	// twice. Errors of the operation itself are never retried.
	Retries Retries `config:"retries"`
	// Which manifests are applied server-side.
	ServerSideApply ServerSideApply `config:"serverSideApply"`
	// What to do with manifest fields that the API server does not know. `strict` rejects the manifest, as
	// kubectl does. `warn` drops the fields and returns warnings, which Spinnaker does not show. `ignore` drops
	// the fields. Server-side applies always reject such fields.
	FieldValidation string `config:"fieldValidation" default:"strict" enum:"strict,warn,ignore"`
	// Zero the buffers of Go's crypto/tls that held metadata of Secrets. Annotations in it may contain data of a
	// Secret, and without this setting parts of them stay in the agent's memory until something overwrites them.
	// The setting relies on unexported fields of crypto/tls: an agent that was built with a Go release with
	// other fields does not read Secrets.
	WipeTLSBuffers bool `config:"wipeTLSBuffers" default:"false"`
	// How often each feed is compared with its cluster in seconds, by the metadata of its objects, besides after
	// events that may have broken it, for example a restart of the API server. What differs is read again. 0 for
	// never, also after such events.
	VerifyInterval time.Duration `config:"verifyIntervalSeconds" format:"seconds" default:"3600" minimum:"0"`
	// The clusters. Entries may be copied from Clouddriver's kubernetes.accounts.
	Accounts []Account `config:"accounts"`
}

// Redact configures what must not leave the cluster in addition to the data of
// Secrets, which never leaves it. All entries are globs, in which * matches any
// characters. A change of these settings makes the agent send all objects of its
// accounts again.
type Redact struct{ redact.Config }

// Outbox configures the queue of changes that the server has not acknowledged.
type Outbox struct {
	// Memory for unacknowledged changes, besides half as much for those of 1 MiB and more, or for one of them. When it is full,
	// the agent stops reading from the API servers until the server acknowledges some. A larger queue keeps more changes through an
	// outage of the server; the rest is read again afterwards.
	MaxBytes int `config:"maxBytes" format:"bytes" default:"8MiB"`
}

// Tasks limits how many first lists run at the same time.
type Tasks struct {
	// Lists of one kind that may run at the same time, over all accounts; 0 for 1,000. At most 8 of them are lists
	// that the API server answers without a pause of three seconds, because each needs memory. The accounts that
	// wait say how many are before them.
	TotalBudget int `config:"totalBudget" default:"1000" minimum:"0"`
	// Lists of one kind that may run at the same time in one account; at most 4 run, whatever the value; 0 for 4.
	BudgetPerAccount int `config:"budgetPerAccount" default:"50" minimum:"0"`
	// Waiting lists start as soon as they may; nothing polls the queue.
	QueueCheckFrequencyMs int `config:"queueCheckFrequencyMs,ignored" default:"2000"`
}
