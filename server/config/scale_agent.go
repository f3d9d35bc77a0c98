package config

import (
	"slices"
	"time"

	"github.com/vedette-io/vedette/internal/configfile"
)

// renames moves the Scale Agent's keys to ours, in this order. Since Armory CD 2.38 they are all
// below armory. The plugin's own file has them without a prefix.
var renames = slices.Concat([]configfile.Rename{
	{From: "logging.level.root", To: "logging.level"},
	{From: "armory.kubesvc", To: "kubesvc"},
}, belowKubesvc("cluster", "cluster-kubernetes", "cluster-database", "disableV2Provider", "dynamicAccounts", "heartbeat", "loadBalancer",
	"locks", "operations", "ops", "runtime", "v2-cache-eviction", "jobs.operation-history",
	"cache.accountCleanupFrequencySeconds", "cache.agentCleanupFrequencySeconds", "cache.cacheAll", "cache.cacheDefaults",
	"cache.cacheKinds", "cache.cacheOmitKinds", "cache.cacheStreamingPoolCoreSize", "cache.cacheStreamingPoolMaxSize",
	"cache.cleanDataWithUnusedAccounts", "cache.eventsCleanupFrequencySeconds", "cache.namespaceExpiryMinutes",
	"cache.onDemandQuickWaitMs", "cache.operationWaitMs",
), []configfile.Rename{
	{From: "kubesvc.grpc.server", To: "grpc.server"},
	{From: "kubesvc.grpc.auth", To: "grpc.auth"},
	{From: "kubesvc.cache.cacheKinds", To: "cache.kinds"},
	{From: "kubesvc.cache.cacheOmitKinds", To: "cache.omitKinds"},
	{From: "kubesvc.cache.cacheAll", To: "cache.all"},
	{From: "kubesvc.cache.operationWaitMs", To: "tasks.timeout", Unit: "ms"},
	{From: "kubesvc.jobs.operation-history.purge.weeks", To: "history.keep", Unit: "w"},
	{From: "kubesvc.cache.accountCleanupFrequencySeconds", To: "accounts.gracePeriod"},
	{From: "kubesvc.cache.cleanDataWithUnusedAccounts", To: "accounts.removeData"},
	{From: "services.fiat", To: "services.fiat"}, // separate from the other services, which have no effect
	{From: "services.front50", To: "services.front50"},
	{From: "kubernetes.cache.checkApplicationInFront50", To: "cache.checkApplicationInFront50"},
	{From: "kubernetes.v2.applyAppLabels", To: "manifests.appLabels"},
	{From: "kubernetes.v2.managedBySuffix", To: "manifests.managedBySuffix"},
	{From: "kubernetes.artifactBinding.dockerImage", To: "manifests.dockerImages"},
	{From: "kubernetes.jobExecutor.persistTaskOutput", To: "tasks.persistOutput"},
	{From: "kubernetes.jobExecutor.enableTaskOutputForAllAccounts", To: "tasks.persistOutputForAllAccounts"},
	{From: "kubernetes.jobs.detailedPodStatus", To: "jobs.detailedPodStatus"},
})

func belowKubesvc(keys ...string) []configfile.Rename {
	renames := make([]configfile.Rename, len(keys))
	for i, key := range keys {
		renames[i] = configfile.Rename{From: key, To: "kubesvc." + key}
	}
	return renames
}

// Kubesvc holds the keys of the predecessor's plugin that have no other name
// here. Others are read too: kubesvc.grpc.server as grpc.server,
// kubesvc.grpc.auth as grpc.auth, kubesvc.cache.cacheKinds as cache.kinds,
// cacheOmitKinds as cache.omitKinds, cacheAll as cache.all,
// accountCleanupFrequencySeconds as accounts.gracePeriod,
// cleanDataWithUnusedAccounts as accounts.removeData, operationWaitMs as
// tasks.timeout, and kubesvc.jobs.operation-history.purge.weeks as history.keep.
// All of them may also be below armory, or without kubesvc.
type Kubesvc struct {
	// The server is always enabled.
	Enabled bool `config:"enabled,ignored" default:"true"`
	// Several servers share the database, unless it is local or none. The list that GET /armory/clouddrivers shows comes from: local and none:
	// this server only, which uses the database alone; kubernetes: the Services in cluster-kubernetes; database: the table of servers in the
	// database; redis: as database, because the server does not use Redis.
	Cluster string `config:"cluster" enum:"none,local,kubernetes,database,redis" default:"local"`
	// The Services in which servers are, for cluster: kubernetes.
	ClusterKubernetes ClusterKubernetes `config:"cluster-kubernetes"`
	// Operations are sent to agents at once, not polled from the database.
	ClusterDatabase configfile.Ignored `config:"cluster-database,ignored"`
	Cache           KubesvcCache       `config:"cache"`
	// Servers write no heartbeats for accounts: one row of the database says which agent reports an account.
	Heartbeat configfile.Ignored `config:"heartbeat,ignored"`
	// Whether accounts that agents of several servers have registered move between them. none: accounts go to the agent with the fewest
	// objects, and move one after the other until all agents have about as many. MN: they go to it, and stay at its server as long as
	// an agent there is connected and heard, and has them. Agents of one server share their accounts in any case.
	LoadBalancer string `config:"loadBalancer" enum:"none,MN" default:"none"`
	// One row of the database decides which agent is the cacher.
	Locks configfile.Ignored `config:"locks,ignored"`
	// New accounts are visible at once; nothing polls for them.
	Credentials configfile.Ignored `config:"credentials,ignored"`
	// The server has no provider of Kubernetes accounts besides agents. Accounts of an existing Clouddriver are shown if
	// upstream.baseUrl names it.
	DisableV2Provider bool `config:"disableV2Provider,ignored" default:"false"`
	// Accounts come from the files of agents, which use a new entry within 5 seconds.
	DynamicAccounts configfile.Ignored `config:"dynamicAccounts,ignored,warn"`
	// Only jobs.operation-history.purge.weeks is used, as history.keep. The history is purged all the time, so that it needs no schedule.
	Jobs configfile.Ignored `config:"jobs,ignored"`
	// Search for an agent when an operation starts.
	Operations KubesvcOperations `config:"operations"`
	// Metrics have no texts of errors as labels, so their length needs no limit.
	Ops configfile.Ignored `config:"ops,ignored"`
	// Set onlySpinnakerManaged and customResources of accounts in the files of agents.
	Runtime configfile.Ignored `config:"runtime,ignored,warn"`
	// There is no cache of Clouddriver to empty.
	V2CacheEviction configfile.Ignored `config:"v2-cache-eviction,ignored"`
}

// KubesvcOperations configures how long an operation waits for an agent of its account.
type KubesvcOperations struct {
	Retry struct {
		// An operation waits maxRetries times backoffMs until an agent of its account is connected.
		MaxRetries int `config:"maxRetries" default:"5" minimum:"0" maximum:"1000"`
		// Part of that time, in milliseconds. The operation starts at once when an agent connects.
		Backoff time.Duration `config:"backoffMs" format:"milliseconds" default:"2000" minimum:"0" maximum:"600000"`
	} `config:"retry"`
}

// AgentWait returns how long an operation waits for an agent.
func (o KubesvcOperations) AgentWait() time.Duration {
	return max(time.Millisecond, time.Duration(o.Retry.MaxRetries)*o.Retry.Backoff)
}

// KubesvcCache holds settings of the predecessor's cache.
type KubesvcCache struct {
	// Kinds to cache in addition to cache.kinds. cache.omitKinds does not apply to them.
	CacheDefaults []string `config:"cacheDefaults"`
	// Batches are written in one queue per agent, not by a pool of threads.
	CacheStreamingPoolCoreSize int `config:"cacheStreamingPoolCoreSize,ignored" default:"10"`
	// Batches are written in one queue per agent, not by a pool of threads.
	CacheStreamingPoolMaxSize int `config:"cacheStreamingPoolMaxSize,ignored" default:"100"`
	// A forced refresh returns at once, because objects are up to date already.
	OnDemandQuickWaitMs int `config:"onDemandQuickWaitMs,ignored" default:"10000"`
	// Events are read from the cluster on request, and not kept.
	EventsCleanupFrequencySeconds int `config:"eventsCleanupFrequencySeconds,ignored" default:"7200"`
	// Three missed heartbeats end a connection.
	AgentCleanupFrequencySeconds int `config:"agentCleanupFrequencySeconds,ignored"`
	// Namespaces are read from the database.
	NamespaceExpiryMinutes int `config:"namespaceExpiryMinutes,ignored" default:"0"`
}

// Clouddriver holds groups of Clouddriver's own file, so that the file loads
// unchanged.
type Clouddriver struct {
	// Only armory.kubesvc is used.
	Armory configfile.Ignored `config:"armory,ignored"`
	// Only services.fiat and services.front50 are used.
	Services configfile.Ignored `config:"services,ignored"`
	// The server does not use Redis.
	Redis configfile.Ignored `config:"redis,ignored"`
	// Names of objects in AWS.
	Default configfile.Ignored `config:"default,ignored"`
	// Kubernetes accounts belong into agents' files. The keys for manifests, jobs and task output are read as manifests, jobs and tasks.
	Kubernetes KubernetesProvider `config:"kubernetes,ignored,warn"`
	// The server serves Kubernetes accounts of agents only; keep a Clouddriver for this provider.
	DockerRegistry configfile.Ignored `config:"dockerRegistry,ignored,warn"`
	// The server serves Kubernetes accounts of agents only; keep a Clouddriver for this provider.
	AWS configfile.Ignored `config:"aws,ignored,warn"`
	// The server serves Kubernetes accounts of agents only; keep a Clouddriver for this provider.
	ECS configfile.Ignored `config:"ecs,ignored,warn"`
	// The server serves Kubernetes accounts of agents only; keep a Clouddriver for this provider.
	Lambda configfile.Ignored `config:"lambda,ignored,warn"`
	// The server serves Kubernetes accounts of agents only; keep a Clouddriver for this provider.
	Google configfile.Ignored `config:"google,ignored,warn"`
	// The server serves Kubernetes accounts of agents only; keep a Clouddriver for this provider.
	Appengine configfile.Ignored `config:"appengine,ignored,warn"`
	// The server serves Kubernetes accounts of agents only; keep a Clouddriver for this provider.
	Azure configfile.Ignored `config:"azure,ignored,warn"`
	// The server serves Kubernetes accounts of agents only; keep a Clouddriver for this provider.
	Cloudfoundry configfile.Ignored `config:"cloudfoundry,ignored,warn"`
	// The server serves Kubernetes accounts of agents only; keep a Clouddriver for this provider.
	Oracle configfile.Ignored `config:"oracle,ignored,warn"`
	// Accounts come from the files of agents, not from a storage that users fill through Spinnaker.
	Account configfile.Ignored `config:"account,ignored,warn"`
	// The server does not use OkHttp.
	OkHTTPClient configfile.Ignored `config:"ok-http-client,alias=okHttpClient,ignored"`
	// The server does not use Spectator. Set prometheus.enabled for metrics.
	Spectator configfile.Ignored `config:"spectator,ignored"`
	// The server does not load plugins.
	Spinnaker configfile.Ignored `config:"spinnaker,ignored"`
}

// KubernetesProvider is the configuration of Clouddriver's own Kubernetes
// provider. Only the presence of accounts is kept: the predecessor required
// kubernetes.enabled, so that the group alone does not mean that accounts are
// missing.
type KubernetesProvider struct{ hasAccounts bool }

// String returns a placeholder, because accounts may hold secrets.
func (KubernetesProvider) String() string { return "(not shown)" }

// UnmarshalConfig accepts everything.
func (k *KubernetesProvider) UnmarshalConfig(v configfile.Value) {
	k.hasAccounts = v.HasEntries("accounts")
}
