package config

import "github.com/vedette-io/vedette/internal/configfile"

// Artifacts configures artifact accounts, with Clouddriver's keys. Files with credentials are read
// when they are used, so that a rotated file needs no restart.
type Artifacts struct {
	// Serve artifacts. If false, there are no artifact accounts, and requests for artifacts fail.
	Enabled bool `config:"enabled" default:"true"`
	// Files from GitHub.
	GitHub GitHubArtifacts `config:"github"`
	// Files from GitLab.
	GitLab GitLabArtifacts `config:"gitlab"`
	// Files from Bitbucket.
	Bitbucket BitbucketArtifacts `config:"bitbucket"`
	// Archives of Git repositories.
	Git GitArtifacts `config:"git-repo,alias=gitrepo,alias=gitRepo"`
	// Files from web servers.
	HTTP HTTPArtifacts `config:"http"`
	// Charts of Helm repositories.
	Helm HelmArtifacts `config:"helm"`
	// Objects of Google Cloud Storage.
	GCS GCSArtifacts `config:"gcs"`
	// Objects of S3.
	S3 S3Artifacts `config:"s3"`
	// Objects of Oracle Cloud's Object Storage.
	Oracle OracleArtifacts `config:"oracle"`

	// Limits of what artifacts cost.
	Limits ArtifactLimits `config:"limits"`
	// Addresses from which artifacts may be fetched.
	Network ArtifactNetwork `config:"network"`

	// Halyard's templates for Jenkins messages, which other services use.
	Templates configfile.Ignored `config:"templates,ignored"`
	// The server does not fetch charts from OCI registries; a Clouddriver behind it (upstream) does.
	HelmOCI configfile.Ignored `config:"helm-oci,alias=helmOci,ignored,warn"`
	// The server does not fetch from Maven repositories; a Clouddriver behind it (upstream) does.
	Maven configfile.Ignored `config:"maven,ignored,warn"`
	// The server does not fetch from Ivy repositories; a Clouddriver behind it (upstream) does.
	Ivy configfile.Ignored `config:"ivy,ignored,warn"`
}

// ArtifactLimits bounds what artifacts cost.
type ArtifactLimits struct {
	// Size of an artifact, and of what is received of a Git repository.
	MaxBytes configfile.Bytes `config:"maxBytes" default:"512MiB"`
	// Size of the index of a Helm repository.
	MaxIndexBytes configfile.Bytes `config:"maxIndexBytes" default:"64MiB"`
	// Size of a file in a Git repository, which is in memory while a clone is unpacked. A quarter of it for files
	// that Git stores as differences, because these take several times their size.
	MaxGitObjectBytes configfile.Bytes `config:"maxGitObjectBytes" default:"64MiB"`
	// Time for an artifact as a whole.
	Timeout configfile.Duration `config:"timeout" default:"10m"`
	// Time without any byte from the other server.
	StallTimeout configfile.Duration `config:"stallTimeout" default:"30s"`
	// Time to connect to another server.
	ConnectTimeout configfile.Duration `config:"connectTimeout" default:"10s"`
	// Number of artifacts that are fetched at the same time. More wait for up to 30 seconds.
	MaxConcurrent int `config:"maxConcurrent" default:"16"`
	// Folder for clones of Git repositories while they are archived. Default: the system's folder for temporary files.
	TempDir string `config:"tempDir"`
}

// ArtifactNetwork decides to which addresses the server connects for artifacts.
type ArtifactNetwork struct {
	// Addresses and networks that are allowed although they are loopback, link-local, multicast or a cloud provider's metadata service.
	AllowedAddresses []string `config:"allowedAddresses"`
	// Addresses and networks that are denied in addition, for example 10.0.0.0/8. allowedAddresses takes precedence.
	DeniedAddresses []string `config:"deniedAddresses"`
}

// GitHubArtifacts are accounts of GitHub.
type GitHubArtifacts struct {
	// Use the accounts.
	Enabled bool `config:"enabled" default:"false"`
	// Accounts with which files are fetched.
	Accounts []GitHubArtifactAccount `config:"accounts"`
}

// GitHubArtifactAccount is an account of GitHub or GitHub Enterprise.
type GitHubArtifactAccount struct {
	// Name of the account.
	Name string `config:"name"`
	// User, with password.
	Username string `config:"username"`
	// Password of the user.
	Password configfile.Secret `config:"password"`
	// File with user:password.
	UsernamePasswordFile string `config:"usernamePasswordFile"`
	// Access token. It is used instead of a password.
	Token configfile.Secret `config:"token"`
	// File with an access token. It is used instead of token.
	TokenFile string `config:"tokenFile"`
	// Get contents from the contents API itself. Needed for files of private repositories in some installations of GitHub Enterprise.
	UseContentAPI bool `config:"useContentAPI,alias=useContentApi" default:"false"`
	// Version of the contents API, for useContentAPI.
	APIVersion string `config:"githubAPIVersion,alias=githubApiVersion" default:"v3"`
	// The server does not ask for tokens of GitHub Apps. Set tokenFile to a file that another program renews.
	GitHubApp configfile.Ignored `config:"githubApp,ignored,warn"`
	// Rules for the hosts that references may name. Default: none besides artifacts.network.
	URLRestrictions *URLRestrictions `config:"urlRestrictions"`
}

// GitLabArtifacts are accounts of GitLab.
type GitLabArtifacts struct {
	// Use the accounts.
	Enabled bool `config:"enabled" default:"false"`
	// Accounts with which files are fetched.
	Accounts []GitLabArtifactAccount `config:"accounts"`
}

// GitLabArtifactAccount is an account of GitLab.
type GitLabArtifactAccount struct {
	// Name of the account.
	Name string `config:"name"`
	// Access token.
	Token configfile.Secret `config:"token"`
	// File with an access token. It is used instead of token.
	TokenFile string `config:"tokenFile"`
	// Rules for the hosts that references may name. Default: none besides artifacts.network.
	URLRestrictions *URLRestrictions `config:"urlRestrictions"`
}

// BitbucketArtifacts are accounts of Bitbucket.
type BitbucketArtifacts struct {
	// Use the accounts.
	Enabled bool `config:"enabled" default:"false"`
	// Accounts with which files are fetched.
	Accounts []BitbucketArtifactAccount `config:"accounts"`
}

// BitbucketArtifactAccount is an account of Bitbucket Cloud or Server.
type BitbucketArtifactAccount struct {
	// Name of the account.
	Name string `config:"name"`
	// User, with password.
	Username string `config:"username"`
	// Password of the user.
	Password configfile.Secret `config:"password"`
	// File with user:password.
	UsernamePasswordFile string `config:"usernamePasswordFile"`
	// Access token. It is used instead of a password.
	Token configfile.Secret `config:"token"`
	// File with an access token. It is used instead of token.
	TokenFile string `config:"tokenFile"`
	// Rules for the hosts that references may name. Default: none besides artifacts.network.
	URLRestrictions *URLRestrictions `config:"urlRestrictions"`
}

// HTTPArtifacts are accounts of web servers.
type HTTPArtifacts struct {
	// Use the accounts, and no-auth-http-account if none of them has credentials.
	Enabled bool `config:"enabled" default:"false"`
	// Accounts with which files are fetched.
	Accounts []HTTPArtifactAccount `config:"accounts"`
}

// HTTPArtifactAccount is an account of a web server.
type HTTPArtifactAccount struct {
	// Name of the account.
	Name string `config:"name"`
	// User, with password.
	Username string `config:"username"`
	// Password of the user.
	Password configfile.Secret `config:"password"`
	// File with user:password.
	UsernamePasswordFile string `config:"usernamePasswordFile"`
	// Rules for the hosts that references may name. Default: none besides artifacts.network.
	URLRestrictions *URLRestrictions `config:"urlRestrictions"`
}

// HelmArtifacts are accounts of Helm repositories.
type HelmArtifacts struct {
	// Use the accounts.
	Enabled bool `config:"enabled" default:"false"`
	// Accounts with which charts are fetched.
	Accounts []HelmArtifactAccount `config:"accounts"`
}

// HelmArtifactAccount is a Helm repository.
type HelmArtifactAccount struct {
	// Name of the account.
	Name string `config:"name"`
	// URL of the repository, without index.yaml.
	Repository string `config:"repository"`
	// User, with password.
	Username string `config:"username"`
	// Password of the user.
	Password configfile.Secret `config:"password"`
	// File with user:password.
	UsernamePasswordFile string `config:"usernamePasswordFile"`
}

// URLRestrictions are rules for the hosts that an account's references may name. If an account has
// the group, its keys have Clouddriver's defaults.
type URLRestrictions struct {
	// Regular expression that host names must match. The default excludes names without a dot, such as Services of Kubernetes.
	AllowedHostnamesRegex string `config:"allowedHostnamesRegex" default:".*\\..+"`
	// Schemes of URLs.
	AllowedSchemes []string `config:"allowedSchemes" default:"http,https"`
	// Deny loopback addresses. If false, this account may use them.
	RejectLocalhost bool `config:"rejectLocalhost" default:"true"`
	// Deny link-local addresses. If false, this account may use them, and the cloud provider's metadata service is one of them.
	RejectLinkLocal bool `config:"rejectLinkLocal" default:"true"`
	// Deny addresses in place of host names.
	RejectVerbatimIPs bool `config:"rejectVerbatimIps" default:"true"`
	// Regular expressions of host names. If there are any, one must match.
	AllowedDomains []string `config:"allowedDomains"`
	// Addresses and networks to deny.
	RejectedIPs []string `config:"rejectedIps"`
	// Domains whose subdomains are denied.
	ExcludedDomains []string `config:"excludedDomains" default:"spinnaker,local,localdomain,internal"`
	// Environment variables with such domains.
	ExcludedDomainsFromEnvironment []string `config:"excludedDomainsFromEnvironment"`
	// Regular expressions of host names that are denied.
	ExtraExcludedPatterns []string `config:"extraExcludedPatterns"`
	// Excluded domains are compared as such.
	ExcludedDomainTemplate string `config:"excludedDomainTemplate,ignored"`
}
