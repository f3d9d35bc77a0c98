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

// Kubesvc are the keys of the predecessor's plugin that have no place of their
// own here. Others are accepted too: kubesvc.grpc.server as grpc.server,
// kubesvc.grpc.auth as grpc.auth, kubesvc.cache.cacheKinds as cache.kinds,
// cacheOmitKinds as cache.omitKinds, accountCleanupFrequencySeconds as
// accounts.gracePeriod, cleanDataWithUnusedAccounts as accounts.removeData. All
// may stand below armory.
type Kubesvc struct {
	// Switch of the plugin.
	Enabled bool `config:"enabled,unused" default:"true"`
	// How servers find each other: local, redis, kubernetes or database.
	Cluster           string            `config:"cluster,unused"`
	ClusterKubernetes ClusterKubernetes `config:"cluster-kubernetes,unused"`
	// Queue of operations in the database.
	ClusterDatabase configfile.Ignored `config:"cluster-database,unused"`
	Cache           KubesvcCache       `config:"cache,unused"`
	// Signs of life between servers and the database.
	Heartbeat configfile.Ignored `config:"heartbeat,unused"`
	// Algorithm to spread accounts.
	LoadBalancer string `config:"loadBalancer,unused"`
	// Leases of the cacher.
	Locks configfile.Ignored `config:"locks,unused"`
	// Polling of accounts.
	Credentials configfile.Ignored `config:"credentials,unused"`
	// Switch Clouddriver's own provider off.
	DisableV2Provider bool `config:"disableV2Provider,unused" default:"false"`
	// Accounts that are taken from elsewhere.
	DynamicAccounts configfile.Ignored `config:"dynamicAccounts,unused"`
	// How long operations are kept.
	Jobs configfile.Ignored `config:"jobs,unused"`
	// Search for an agent, and metrics of operations.
	Operations configfile.Ignored `config:"operations,unused"`
	// Metrics of operations.
	Ops configfile.Ignored `config:"ops,unused"`
	// Settings of accounts given at the server.
	Runtime configfile.Ignored `config:"runtime,unused"`
	// Removal of Clouddriver's cache on migration.
	V2CacheEviction configfile.Ignored `config:"v2-cache-eviction,unused"`
}

// ClusterKubernetes is how servers find each other by the Kubernetes API.
type ClusterKubernetes struct {
	// File with the kubeconfig; by default the pod's service account.
	KubeconfigFile string `config:"kubeconfigFile"`
	// Check the API server's certificate.
	VerifySSL bool `config:"verifySsl" default:"true"`
	// Namespace of the servers; by default the pod's.
	Namespace string `config:"namespace"`
	// Name of the port of their REST API.
	HTTPPortName string `config:"httpPortName" default:"http"`
	// Start of the name of their Services.
	ServiceNamePrefix string `config:"clouddriverServiceNamePrefix" default:"spin-clouddriver"`
	// Name servers by DNS.
	UseDNS bool `config:"useDNS" default:"false"`
	// Domain for that.
	DomainName string `config:"domainName" default:"cluster.local"`
	// Fail to start where no server is found.
	FailFast bool `config:"failFast" default:"true"`
}

// KubesvcCache are settings of the predecessor's cache.
type KubesvcCache struct {
	// Kinds that were cached in any case.
	CacheDefaults []string `config:"cacheDefaults"`
	// Writing threads at least.
	CacheStreamingPoolCoreSize int `config:"cacheStreamingPoolCoreSize" default:"10"`
	// Writing threads at most.
	CacheStreamingPoolMaxSize int `config:"cacheStreamingPoolMaxSize" default:"100"`
	// Milliseconds to wait for a forced refresh.
	OnDemandQuickWaitMs int `config:"onDemandQuickWaitMs" default:"10000"`
	// Milliseconds to wait for an operation.
	OperationWaitMs int `config:"operationWaitMs" default:"30000"`
	// Seconds for which Kubernetes events are kept.
	EventsCleanupFrequencySeconds int `config:"eventsCleanupFrequencySeconds" default:"7200"`
	// Seconds after which an agent without a sign of life is dropped.
	AgentCleanupFrequencySeconds int `config:"agentCleanupFrequencySeconds"`
	// Minutes for which namespaces were kept in memory.
	NamespaceExpiryMinutes int `config:"namespaceExpiryMinutes" default:"0"`
}

// Clouddriver are groups of Clouddriver's own file, so that it can be used as it
// is. They have no effect here.
type Clouddriver struct {
	// Other settings of Armory.
	Armory configfile.Ignored `config:"armory,unused"`
	// Other services of Spinnaker.
	Services configfile.Ignored `config:"services,unused"`
	// Redis: none is needed.
	Redis configfile.Ignored `config:"redis,unused"`
	// Defaults of names in AWS.
	Default configfile.Ignored `config:"default,unused"`
	// Accounts of Clouddriver's own Kubernetes provider. What it says of manifests, jobs and the output of tasks counts as manifests, jobs and tasks.
	Kubernetes configfile.Ignored `config:"kubernetes,unused"`
	// Another provider.
	DockerRegistry configfile.Ignored `config:"dockerRegistry,unused"`
	// Another provider.
	AWS configfile.Ignored `config:"aws,unused"`
	// Another provider.
	ECS configfile.Ignored `config:"ecs,unused"`
	// Another provider.
	Lambda configfile.Ignored `config:"lambda,unused"`
	// Another provider.
	Google configfile.Ignored `config:"google,unused"`
	// Another provider.
	Appengine configfile.Ignored `config:"appengine,unused"`
	// Another provider.
	Azure configfile.Ignored `config:"azure,unused"`
	// Another provider.
	Cloudfoundry configfile.Ignored `config:"cloudfoundry,unused"`
	// Another provider.
	Oracle configfile.Ignored `config:"oracle,unused"`
	// Artifact accounts.
	Artifacts configfile.Ignored `config:"artifacts,unused"`
	// Account storage.
	Account configfile.Ignored `config:"account,unused"`
	// HTTP client.
	OkHTTPClient configfile.Ignored `config:"ok-http-client,alias=okHttpClient,unused"`
	// Health and metrics of Spring.
	Management configfile.Ignored `config:"management,unused"`
	// Metrics.
	Spectator configfile.Ignored `config:"spectator,unused"`
	// Plugins and other extensions.
	Spinnaker configfile.Ignored `config:"spinnaker,unused"`
	// Engines that resolve encrypted: references. Such a reference is refused until they exist.
	Secrets configfile.Ignored `config:"secrets,unused"`
}
