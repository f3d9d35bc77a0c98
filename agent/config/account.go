package config

import (
	"encoding/json"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
)

// Account is one cluster under the name that users know it by. It has the keys
// of the predecessor and of Clouddriver, so that an entry can be copied from
// either.
type Account struct {
	// Name of the account, unique in the whole installation.
	Name string `config:"name"`
	// File with the kubeconfig. It is read again when it changes, with the certificates that it names. Without it, serviceAccount and kubeconfigContents, the default kubeconfig is used, as by kubectl.
	KubeconfigFile string `config:"kubeconfigFile"`
	// The kubeconfig itself.
	KubeconfigContents configfile.Secret `config:"kubeconfigContents"`
	// Context within the kubeconfig; by default its current one.
	Context string `config:"context"`
	// Use the pod's own service account and cluster. It wins over a kubeconfig, as in Clouddriver.
	ServiceAccount bool `config:"serviceAccount" default:"false"`
	// Accept any certificate of the API server.
	Insecure bool `config:"insecure" default:"false"`
	// Ignore HTTP_PROXY, HTTPS_PROXY and NO_PROXY towards this cluster.
	NoProxy bool `config:"noProxy" default:"false"`

	// Kinds to cache, for example deployment; by default those that the server names. Not together with omitKinds.
	Kinds []string `config:"kinds"`
	// Kinds not to cache.
	OmitKinds []string `config:"omitKinds"`
	// Namespaces to watch, each with watches of its own; by default all. Not together with omitNamespaces.
	Namespaces []string `config:"namespaces"`
	// Namespaces not to watch.
	OmitNamespaces []string `config:"omitNamespaces"`
	// Ask for nothing that is not in a namespace; namespaces and customResourceDefinitions then say what there is.
	OnlyNamespacedResources bool `config:"onlyNamespacedResources" default:"false"`
	// Cache only what Spinnaker deployed.
	OnlySpinnakerManaged bool `config:"onlySpinnakerManaged" default:"false"`
	// Custom kinds, where onlyNamespacedResources keeps the agent from asking for them.
	CustomResourceDefinitions []CustomResourceDefinition `config:"customResourceDefinitions"`
	// How Spinnaker treats custom kinds.
	CustomResources []CustomResource `config:"customResources"`
	// Milliseconds for which a resourceVersion may be resumed from without a list: the API server says itself which ones it still knows, and whatever it knows is resumed from.
	MaxResumableResourceAgeMs int `config:"maxResumableResourceAgeMs,unused" default:"300000"`

	// Roles that may use the account: a list of READ, WRITE and EXECUTE with roles each, or one map of them. Left out, the account is open to everyone.
	Permissions Permissions `config:"permissions"`
	// Roles that may read and write, where there are no permissions: Clouddriver's older form.
	RequiredGroupMembership []string `config:"requiredGroupMembership"`
	// Environment as Spinnaker shows it; by default the account's name.
	Environment string `config:"environment"`
	// Sort of account as Spinnaker shows it; by default the account's name.
	AccountType string `config:"accountType"`
	// Kinds in Spinnaker's view of raw resources.
	RawResources *RawResources `config:"rawResourcesEndpointConfig"`
	// Show the relationships of all objects of an application.
	CacheAllApplicationRelationships bool `config:"cacheAllApplicationRelationships" default:"false"`

	// Show the CPU and memory that a pod's containers use with its manifest. The cluster's metrics server is asked when somebody looks.
	Metrics bool `config:"metrics" default:"true"`
	// Let a deployment wait for kinds that Clouddriver calls stable as soon as they are there: until a CustomResourceDefinition is established, an APIService available, a PersistentVolumeClaim bound, a Namespace active, a Service of type LoadBalancer or an Ingress has an address, a PodDisruptionBudget was seen, and custom resources are ready by their conditions (Ready, Available, Reconciling, Stalled). A claim that is bound with its first pod only must not be deployed in a stage before that pod's.
	CheckReadiness bool `config:"checkReadiness" default:"false"`
	// Keep with Spinnaker's tasks what became of each change of the cluster, where the server has tasks.persistOutput.
	Debug bool `config:"debug" default:"false"`
	// OAuth scopes, for Google's clusters.
	OAuthScopes []string `config:"oAuthScopes,unused"`
	// File with an OAuth service account.
	OAuthServiceAccount string `config:"oAuthServiceAccount,unused"`
	// Service account of the agent's pod, in samples.
	ServiceAccountName string `config:"serviceAccountName,unused"`
	ClouddriverAccount
}

// ClouddriverAccount are keys of Clouddriver that mean nothing to an agent.
type ClouddriverAccount struct {
	// kubectl to run: none is run.
	KubectlExecutable string `config:"kubectlExecutable,unused"`
	// Its time limit in seconds.
	KubectlRequestTimeoutSeconds int `config:"kubectlRequestTimeoutSeconds,unused"`
	// Most objects to cache of a kind.
	CachingPolicies configfile.Ignored `config:"cachingPolicies,unused"`
	// Polling threads: nothing is polled.
	CacheThreads int `config:"cacheThreads,unused"`
	// Seconds between polls.
	CacheIntervalSeconds int `config:"cacheIntervalSeconds,unused"`
	// Ask for permissions at start.
	CheckPermissionsOnStartup bool `config:"checkPermissionsOnStartup,unused"`
	// How names become applications: by annotations, always.
	NamingStrategy string `config:"namingStrategy,unused"`
	// Version of Clouddriver's provider: the second is the only one left.
	ProviderVersion string `config:"providerVersion,unused"`
	// Docker registries of the first version.
	DockerRegistries configfile.Ignored `config:"dockerRegistries,unused"`
	// Whether the first version set up pull secrets.
	ConfigureImagePullSecrets bool `config:"configureImagePullSecrets,unused"`
	// Read manifests from the cluster: manifests always are.
	LiveManifestCalls bool `config:"liveManifestCalls,unused"`
}

// CustomResourceDefinition declares a custom kind.
type CustomResourceDefinition struct {
	// Kind and group, as in CronTab.stable.example.com.
	Kind string `config:"kind"`
	// Namespaced or Cluster.
	Scope string `config:"scope" default:"Namespaced"`
}

// CustomResource is how Spinnaker treats a custom kind.
type CustomResource struct {
	// Kind and group, as in CronTab.stable.example.com.
	KubernetesKind string `config:"kubernetesKind"`
	// Spinnaker's kind: unclassified, instances, serverGroups, serverGroupManagers, loadBalancers, securityGroups or configs.
	SpinnakerKind string `config:"spinnakerKind" default:"unclassified"`
	// Place in the order of a deployment: lower is earlier.
	DeployPriority string `config:"deployPriority" default:"100"`
	// Give each version a name of its own.
	Versioned bool `config:"versioned" default:"false"`
	// Whether objects are in namespaces.
	Namespaced *bool `config:"namespaced"`
}

// RawResources says which kinds the view of raw resources shows. Entries are
// regular expressions.
type RawResources struct {
	// Kinds to show.
	KindExpressions []string `config:"kindExpressions" json:"kindExpressions,omitempty"`
	// Kinds not to show.
	OmitKindExpressions []string `config:"omitKindExpressions" json:"omitKindExpressions,omitempty"`
}

// AccountName is the account's name as the rest of the agent has it.
func (a Account) AccountName() vedette.AccountName { return vedette.AccountName(a.Name) }

// Properties are the settings that the server is told. Environment and
// AccountType stay empty where they are not set.
func (a Account) Properties() vedette.Properties {
	return vedette.Properties{
		Environment:            a.Environment,
		AccountType:            a.AccountType,
		Permissions:            a.permissions(),
		Kinds:                  a.Kinds,
		OmitKinds:              a.OmitKinds,
		Namespaces:             a.Namespaces,
		OmitNamespaces:         a.OmitNamespaces,
		OnlySpinnakerManaged:   a.OnlySpinnakerManaged,
		CustomResources:        a.customResources(),
		CacheAllRelationships:  a.CacheAllApplicationRelationships,
		RawResourceExpressions: a.rawResources(),
		CheckReadiness:         a.CheckReadiness,
		Debug:                  a.Debug,
		Metrics:                a.metrics(),
	}
}

// metrics is nil where they are shown, which is the default.
func (a Account) metrics() *bool {
	if a.Metrics {
		return nil
	}
	return &a.Metrics
}

// permissions are nil for an account that is open to everyone.
func (a Account) permissions() *vedette.Permissions {
	if a.Permissions.parsed == nil && len(a.RequiredGroupMembership) > 0 {
		return &vedette.Permissions{Read: a.RequiredGroupMembership, Write: a.RequiredGroupMembership}
	}
	return a.Permissions.parsed
}

func (a Account) customResources() []vedette.CustomResource {
	var resources []vedette.CustomResource
	for _, c := range a.CustomResources {
		resources = append(resources, vedette.CustomResource(c))
	}
	return resources
}

func (a Account) rawResources() json.RawMessage {
	if a.RawResources == nil {
		return nil
	}
	encoded, err := json.Marshal(a.RawResources)
	if err != nil {
		return nil // two lists of strings can always be encoded
	}
	return encoded
}
