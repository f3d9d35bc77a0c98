package config

import "github.com/vedette-io/vedette/internal/configfile"

// renames moves the Scale Agent's keys to ours, in this order. Since Armory CD 2.38 they are all
// below armory.
var renames = [...]configfile.Rename{
	{From: "armory.kubesvc", To: "kubesvc"},
	{From: "kubesvc.grpc.server", To: "grpc.server"},
	{From: "kubesvc.grpc.auth", To: "grpc.auth"},
	{From: "kubesvc.cache.cacheKinds", To: "cache.kinds"},
	{From: "kubesvc.cache.cacheOmitKinds", To: "cache.omitKinds"},
	{From: "kubesvc.cache.cacheAll", To: "cache.all"},
	{From: "kubesvc.cache.accountCleanupFrequencySeconds", To: "accounts.gracePeriod"},
	{From: "kubesvc.cache.cleanDataWithUnusedAccounts", To: "accounts.removeData"},
	{From: "services.fiat", To: "services.fiat"}, // separate from the other services, which have no effect
	{From: "services.front50", To: "services.front50"},
	{From: "kubernetes.cache.checkApplicationInFront50", To: "cache.checkApplicationInFront50"},
	{From: "kubernetes.v2.applyAppLabels", To: "manifests.appLabels"},
	{From: "kubernetes.v2.apply-app-labels", To: "manifests.appLabels"},
	{From: "kubernetes.v2.managedBySuffix", To: "manifests.managedBySuffix"},
	{From: "kubernetes.v2.managed-by-suffix", To: "manifests.managedBySuffix"},
	{From: "kubernetes.artifactBinding.dockerImage", To: "manifests.dockerImages"},
	{From: "kubernetes.artifact-binding.docker-image", To: "manifests.dockerImages"},
	{From: "kubernetes.jobExecutor.persistTaskOutput", To: "tasks.persistOutput"},
	{From: "kubernetes.jobExecutor.enableTaskOutputForAllAccounts", To: "tasks.persistOutputForAllAccounts"},
	{From: "kubernetes.jobExecutor.persist-task-output", To: "tasks.persistOutput"},
	{From: "kubernetes.jobExecutor.enable-task-output-for-all-accounts", To: "tasks.persistOutputForAllAccounts"},
	{From: "kubernetes.jobs.detailedPodStatus", To: "jobs.detailedPodStatus"},
	{From: "kubernetes.jobs.detailed-pod-status", To: "jobs.detailedPodStatus"},
}

// Kubesvc holds the keys of the predecessor's plugin that have no other name
// here. Others are read too: kubesvc.grpc.server as grpc.server,
// kubesvc.grpc.auth as grpc.auth, kubesvc.cache.cacheKinds as cache.kinds,
// cacheOmitKinds as cache.omitKinds, accountCleanupFrequencySeconds as
// accounts.gracePeriod, cleanDataWithUnusedAccounts as accounts.removeData. All
// of them may also be below armory.
type Kubesvc struct {
	// The server is always enabled.
	Enabled bool `config:"enabled,ignored" default:"true"`
	// How servers find each other: local, redis, kubernetes or database. Today one server runs per database.
	Cluster           string            `config:"cluster,planned,warn" default:"local"`
	ClusterKubernetes ClusterKubernetes `config:"cluster-kubernetes,planned"`
	// Queue of operations in the database, for cluster: database.
	ClusterDatabase configfile.Ignored `config:"cluster-database,planned"`
	Cache           KubesvcCache       `config:"cache"`
	// Heartbeats between servers.
	Heartbeat configfile.Ignored `config:"heartbeat,planned"`
	// Algorithm that spreads accounts over servers.
	LoadBalancer string `config:"loadBalancer,planned"`
	// One row of the database decides which agent is the cacher.
	Locks configfile.Ignored `config:"locks,ignored"`
	// New accounts are visible at once; nothing polls for them.
	Credentials configfile.Ignored `config:"credentials,ignored"`
	// The server has no other provider of Kubernetes accounts.
	DisableV2Provider bool `config:"disableV2Provider,ignored" default:"false"`
	// Accounts that the server takes from other sources.
	DynamicAccounts configfile.Ignored `config:"dynamicAccounts,planned,warn"`
	// Time for which the history of operations is kept. Today: 14 days.
	Jobs configfile.Ignored `config:"jobs,planned"`
	// Search for an agent, and metrics of operations.
	Operations configfile.Ignored `config:"operations,planned"`
	// Metrics of operations.
	Ops configfile.Ignored `config:"ops,planned"`
	// Settings of accounts, given at the server: onlySpinnakerManaged and customResources.
	Runtime configfile.Ignored `config:"runtime,planned,warn"`
	// There is no cache of Clouddriver to empty.
	V2CacheEviction configfile.Ignored `config:"v2-cache-eviction,ignored"`
}

// ClusterKubernetes configures how servers find each other through the
// Kubernetes API.
type ClusterKubernetes struct {
	// Kubeconfig file. Default: the pod's service account.
	KubeconfigFile string `config:"kubeconfigFile"`
	// Verify the API server's certificate.
	VerifySSL bool `config:"verifySsl" default:"true"`
	// Namespace of the servers. Default: the pod's.
	Namespace string `config:"namespace"`
	// Name of the port of the REST API.
	HTTPPortName string `config:"httpPortName" default:"http"`
	// Prefix of the names of the servers' Services.
	ServiceNamePrefix string `config:"clouddriverServiceNamePrefix" default:"spin-clouddriver"`
	// Address servers by DNS names.
	UseDNS bool `config:"useDNS" default:"false"`
	// Domain of the DNS names.
	DomainName string `config:"domainName" default:"cluster.local"`
	// Fail to start if no server is found.
	FailFast bool `config:"failFast" default:"true"`
}

// KubesvcCache holds settings of the predecessor's cache.
type KubesvcCache struct {
	// Kinds that are cached in every account.
	CacheDefaults []string `config:"cacheDefaults,planned,warn"`
	// Batches are written in one queue per agent, not by a pool of threads.
	CacheStreamingPoolCoreSize int `config:"cacheStreamingPoolCoreSize,ignored" default:"10"`
	// Batches are written in one queue per agent, not by a pool of threads.
	CacheStreamingPoolMaxSize int `config:"cacheStreamingPoolMaxSize,ignored" default:"100"`
	// A forced refresh returns at once, because objects are up to date already.
	OnDemandQuickWaitMs int `config:"onDemandQuickWaitMs,ignored" default:"10000"`
	// Maximum time of an operation, in milliseconds. Today: tasks.timeout.
	OperationWaitMs int `config:"operationWaitMs,planned,warn" default:"30000"`
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
	// Storage of accounts that users add through Spinnaker.
	Account configfile.Ignored `config:"account,planned,warn"`
	// The server does not use OkHttp.
	OkHTTPClient configfile.Ignored `config:"ok-http-client,alias=okHttpClient,ignored"`
	// The server does not use Spring's endpoints; its probes are below /health.
	Management configfile.Ignored `config:"management,ignored"`
	// The server does not use Spectator.
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
