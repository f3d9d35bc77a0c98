package config

import (
	"encoding/json"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/cloud"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/internal/configfile"
)

// Account is one cluster, under the name that users know. Entries may be copied
// from the predecessor's file or from Clouddriver's.
type Account struct {
	// Name of the account, unique in the whole installation.
	Name configfile.ExactText `config:"name"`
	// Kubeconfig file. The agent reads it again when it, or a certificate that it names, changes. If
	// kubeconfigFile, kubeconfigContents and serviceAccount are all unset, the agent uses the default kubeconfig, as kubectl does.
	KubeconfigFile string `config:"kubeconfigFile"`
	// The kubeconfig itself, in place of a file.
	KubeconfigContents configfile.Secret `config:"kubeconfigContents"`
	// Context in the kubeconfig. Default: the current context.
	Context string `config:"context"`
	// Use the pod's service account and cluster. Takes precedence over a kubeconfig, as in Clouddriver.
	ServiceAccount bool `config:"serviceAccount" default:"false"`
	// Clusters of EKS, GKE and AKS: how to reach one without a kubeconfig, and who gets the tokens of kubeconfigs of these clouds.
	Cloud cloud.Cluster `config:"cloud"`
	// Do not verify the API server's certificate. Anyone on the network path can then read and change what the agent sends.
	Insecure bool `config:"insecure" default:"false"`
	// Connect to this cluster directly: ignore HTTP_PROXY, HTTPS_PROXY and NO_PROXY.
	NoProxy bool `config:"noProxy" default:"false"`

	watch.Selection
	// How Spinnaker treats custom kinds.
	CustomResources []CustomResource `config:"customResources"`
	// The API server decides which resourceVersions it still knows; the agent resumes from each of them, however
	// old, and lists again only if the API server has forgotten it.
	MaxResumableResourceAgeMs int `config:"maxResumableResourceAgeMs,ignored" default:"300000" minimum:"0"`

	// Roles that may use the account: a list of READ, WRITE and EXECUTE with roles each, or one map of them. If
	// unset, everyone may use the account. An account with unreadable permissions is left out.
	Permissions Permissions `config:"permissions"`
	// Roles that may read and write, if permissions is unset. An older form of Clouddriver's.
	RequiredGroupMembership []string `config:"requiredGroupMembership"`
	// Environment that Spinnaker shows. Default: the account's name.
	Environment string `config:"environment"`
	// Account type that Spinnaker shows. Default: the account's name.
	AccountType string `config:"accountType"`
	// Kinds in Spinnaker's view of raw resources.
	RawResources *RawResources `config:"rawResourcesEndpointConfig"`
	// Show the relationships of all objects of an application.
	CacheAllApplicationRelationships bool `config:"cacheAllApplicationRelationships" default:"false"`

	// Show CPU and memory of a pod's containers with its manifest. Costs one request to the cluster's metrics server per view.
	Metrics bool `config:"metrics" default:"true"`
	// Make deployments wait for kinds that Clouddriver calls stable at once: until a CustomResourceDefinition is
	// established, an APIService is available, a PersistentVolumeClaim is bound, a Namespace is active, a
	// LoadBalancer Service or an Ingress has an address, a PodDisruptionBudget is observed, and custom resources
	// are ready by their conditions (Ready, Available, Reconciling, Stalled). Do not use it if a stage deploys a
	// claim that is bound only when its first pod, deployed by a later stage, starts.
	CheckReadiness bool `config:"checkReadiness" default:"false"`
	// Keep the output of each change with Spinnaker's tasks, if the server has tasks.persistOutput set.
	Debug bool `config:"debug" default:"false"`
	// OAuth scopes of access tokens of Google. Default: https://www.googleapis.com/auth/cloud-platform. Without
	// oAuthServiceAccount, the tokens are those of the environment (Application Default Credentials), and are used
	// if the kubeconfig has no credentials or names the auth-provider gcp, and for clusters with cloud.provider: gke.
	OAuthScopes []string `config:"oAuthScopes"`
	// File with the key of a service account of Google, in JSON. Its access tokens replace the credentials of the
	// kubeconfig. The agent reads the file for each token.
	OAuthServiceAccount string `config:"oAuthServiceAccount"`
	// Appears in the predecessor's samples only; the pod's specification decides.
	ServiceAccountName string `config:"serviceAccountName,ignored"`
	ClouddriverAccount
}

// ClouddriverAccount holds keys of Clouddriver that an agent does not need.
type ClouddriverAccount struct {
	// The agent does not run kubectl.
	KubectlExecutable string `config:"kubectlExecutable,ignored"`
	// The agent does not run kubectl.
	KubectlRequestTimeoutSeconds int `config:"kubectlRequestTimeoutSeconds,ignored"`
	// Memory and traffic do not depend on how many objects of a kind there are, so no limit is needed.
	CachingPolicies configfile.Ignored `config:"cachingPolicies,ignored"`
	// The agent watches and does not poll.
	CacheThreads int `config:"cacheThreads,ignored"`
	// The agent watches and does not poll.
	CacheIntervalSeconds int `config:"cacheIntervalSeconds,ignored"`
	// The agent reports each kind that it may not read, and tries again.
	CheckPermissionsOnStartup bool `config:"checkPermissionsOnStartup,ignored"`
	// Applications always come from annotations and names.
	NamingStrategy string `config:"namingStrategy,ignored"`
	// Only version 2 of Clouddriver's provider still exists.
	ProviderVersion string `config:"providerVersion,ignored"`
	// Belonged to version 1 of Clouddriver's provider.
	DockerRegistries configfile.Ignored `config:"dockerRegistries,ignored"`
	// Belonged to version 1 of Clouddriver's provider.
	ConfigureImagePullSecrets bool `config:"configureImagePullSecrets,ignored"`
	// The store answers while the kind's feed is live; otherwise the server reads the manifest from the cluster.
	LiveManifestCalls bool `config:"liveManifestCalls,ignored,warn"`
}

// CustomResource defines how Spinnaker treats a custom kind.
type CustomResource struct {
	// Kind and group, for example CronTab.stable.example.com.
	KubernetesKind string `config:"kubernetesKind"`
	// Spinnaker's kind: unclassified, instances, serverGroups, serverGroupManagers, loadBalancers, securityGroups or configs.
	SpinnakerKind string `config:"spinnakerKind" default:"unclassified"`
	// Position in the order of a deployment; lower is earlier.
	DeployPriority string `config:"deployPriority" default:"100"`
	// Give each version an object name of its own.
	Versioned bool `config:"versioned" default:"false"`
	// Whether objects of the kind are in namespaces.
	Namespaced *bool `config:"namespaced"`
}

// RawResources selects the kinds in the view of raw resources. Entries are
// regular expressions that match whole names of kinds, for example "crontab.*". One that
// is not valid in Go (RE2), for example because of a lookahead, matches nothing.
type RawResources struct {
	// Kinds to show even though omitKindExpressions hides them.
	KindExpressions []string `config:"kindExpressions" json:"kindExpressions,omitempty"`
	// Kinds to hide.
	OmitKindExpressions []string `config:"omitKindExpressions" json:"omitKindExpressions,omitempty"`
}

// AccountName returns the name as the type that the rest of the agent uses.
func (a Account) AccountName() vedette.AccountName { return vedette.AccountName(a.Name) }

// Properties returns the settings that the agent sends to the server. Environment
// and AccountType stay empty if they are not set, because the server knows their
// defaults.
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

// metrics returns nil for the default, which is to show metrics.
func (a Account) metrics() *bool {
	if a.Metrics {
		return nil
	}
	return &a.Metrics
}

// permissions returns nil if everyone may use the account.
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
		return nil // unreachable, because lists of strings can always be encoded
	}
	return encoded
}
