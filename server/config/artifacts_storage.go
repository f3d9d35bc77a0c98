package config

import "github.com/vedette-io/vedette/internal/configfile"

// GitArtifacts are accounts of Git repositories.
type GitArtifacts struct {
	// Use the accounts.
	Enabled bool `config:"enabled" default:"false"`
	// Accounts with which repositories are cloned.
	Accounts []GitArtifactAccount `config:"accounts"`
	// Clones are shallow, and removed at once.
	CloneRetentionMinutes int `config:"cloneRetentionMinutes,alias=clone-retention-minutes,ignored"`
	// Clones are shallow, and removed at once.
	CloneRetentionCheckMs int `config:"cloneRetentionCheckMs,alias=clone-retention-check-ms,ignored"`
	// Clones are shallow, and removed at once.
	CloneRetentionMaxBytes int `config:"cloneRetentionMaxBytes,alias=clone-retention-max-bytes,ignored"`
	// Clones do not wait for each other.
	CloneWaitLockTimeoutSec int `config:"cloneWaitLockTimeoutSec,alias=clone-wait-lock-timeout-sec,ignored"`
	// References must be URLs with http, https or ssh, or start with git@.
	ValidGitURLRegex string `config:"validGitUrlRegex,ignored"`
}

// GitArtifactAccount is an account of a Git server. It has a password or a token for HTTP, or a key
// for SSH.
type GitArtifactAccount struct {
	// Name of the account.
	Name string `config:"name"`
	// User, with password or token.
	Username string `config:"username"`
	// Password of the user.
	Password configfile.Secret `config:"password"`
	// File with user:password.
	UsernamePasswordFile string `config:"usernamePasswordFile"`
	// Access token.
	Token configfile.Secret `config:"token"`
	// File with an access token. It is used instead of token.
	TokenFile string `config:"tokenFile"`
	// File with a private key for SSH.
	SSHPrivateKeyFilePath string `config:"sshPrivateKeyFilePath"`
	// Passphrase of the private key.
	SSHPrivateKeyPassphrase configfile.Secret `config:"sshPrivateKeyPassphrase"`
	// Program that prints the passphrase of the private key. It is used instead of sshPrivateKeyPassphrase.
	SSHPrivateKeyPassphraseCmd string `config:"sshPrivateKeyPassphraseCmd"`
	// File with the keys of known hosts. Default: ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts.
	SSHKnownHostsFilePath string `config:"sshKnownHostsFilePath"`
	// Accept any key of any host. Whoever controls the network can then change what is deployed.
	SSHTrustUnknownHosts bool `config:"sshTrustUnknownHosts" default:"false"`
	// Hosts that references may name, with their subdomains. Default: all.
	AllowedHosts []string `config:"allowedHosts"`
	// The server does not ask for tokens of GitHub Apps. Set tokenFile to a file that another program renews.
	GitHubApp configfile.Ignored `config:"githubApp,ignored,warn"`
}

// GCSArtifacts are accounts of Google Cloud Storage.
type GCSArtifacts struct {
	// Use the accounts.
	Enabled bool `config:"enabled" default:"false"`
	// Accounts with which objects are fetched.
	Accounts []GCSArtifactAccount `config:"accounts"`
}

// GCSArtifactAccount is an account of Google Cloud Storage.
type GCSArtifactAccount struct {
	// Name of the account.
	Name string `config:"name"`
	// File with the key of a service account. Default: the credentials of the environment or the machine.
	JSONPath string `config:"jsonPath"`
	// URL of a server with the same API. Default: https://storage.googleapis.com.
	Endpoint string `config:"endpoint"`
}

// S3Artifacts are accounts of S3.
type S3Artifacts struct {
	// Use the accounts.
	Enabled bool `config:"enabled" default:"false"`
	// Accounts with which objects are fetched.
	Accounts []S3ArtifactAccount `config:"accounts"`
	// artifacts.limits limits the time instead.
	ClientExecutionTimeout int `config:"clientExecutionTimeout,ignored"`
	// The server has its own limits for connections.
	ConnectionMaxIdleMillis int `config:"connectionMaxIdleMillis,ignored"`
	// artifacts.limits limits the time instead.
	ConnectionTimeout int `config:"connectionTimeout,ignored"`
	// The server has its own limits for connections.
	ConnectionTTL int `config:"connectionTTL,ignored"`
	// The server has its own limits for connections.
	MaxConnections int `config:"maxConnections,ignored"`
	// artifacts.limits limits the time instead.
	RequestTimeout int `config:"requestTimeout,ignored"`
	// artifacts.limits limits the time instead.
	SocketTimeout int `config:"socketTimeout,ignored"`
	// The server has its own limits for connections.
	ValidateAfterInactivityMillis int `config:"validateAfterInactivityMillis,ignored"`
	// Endpoints are not logged.
	LogEndpoints bool `config:"logEndpoints,ignored"`
}

// S3ArtifactAccount is an account of S3 or of a service with the same API.
type S3ArtifactAccount struct {
	// Name of the account.
	Name string `config:"name"`
	// URL of a service with the API of S3. Default: that of AWS.
	APIEndpoint string `config:"apiEndpoint"`
	// Region, with apiEndpoint.
	APIRegion string `config:"apiRegion"`
	// Region, without apiEndpoint. Default: that of the environment.
	Region string `config:"region"`
	// Access key. Default: credentials of the environment, ~/.aws, the pod's service account or the machine.
	AccessKeyID string `config:"awsAccessKeyId"`
	// Secret of the access key.
	SecretAccessKey configfile.Secret `config:"awsSecretAccessKey"`
	// Requests have signatures of version 4.
	SignerOverride string `config:"signerOverride,ignored"`
}

// OracleArtifacts are accounts of Oracle Cloud.
type OracleArtifacts struct {
	// Use the accounts.
	Enabled bool `config:"enabled" default:"false"`
	// Accounts with which objects are fetched.
	Accounts []OracleArtifactAccount `config:"accounts"`
}

// OracleArtifactAccount is an account of Oracle Cloud.
type OracleArtifactAccount struct {
	// Name of the account.
	Name string `config:"name"`
	// Namespace of Object Storage.
	Namespace string `config:"namespace"`
	// Region, for example us-phoenix-1.
	Region string `config:"region"`
	// OCID of the user.
	UserID string `config:"userId"`
	// Fingerprint of the key.
	Fingerprint string `config:"fingerprint"`
	// File with the private key.
	SSHPrivateKeyFilePath string `config:"sshPrivateKeyFilePath"`
	// Passphrase of the private key.
	PrivateKeyPassphrase configfile.Secret `config:"privateKeyPassphrase"`
	// OCID of the tenancy.
	TenancyID string `config:"tenancyId"`
}

// ArtifactStore is where Spinnaker's other services keep large artifacts, with their keys.
type ArtifactStore struct {
	// s3, or empty for no store.
	Type string `config:"type"`
	// Bucket of the store.
	S3 ArtifactStoreS3 `config:"s3"`
	// The server does not write to the store.
	ApplicationsRegex string `config:"applicationsRegex,alias=applications-regex,ignored"`
	// The server does not write to the store.
	Exclude configfile.Ignored `config:"exclude,ignored"`
	// The server renders no charts.
	Helm configfile.Ignored `config:"helm,ignored"`
}

// ArtifactStoreS3 is a bucket with artifacts.
type ArtifactStoreS3 struct {
	// artifact-store.type alone decides.
	Enabled bool `config:"enabled,ignored"`
	// Name of the bucket. Required with type s3.
	Bucket string `config:"bucket"`
	// Region of the bucket. Default: that of the environment.
	Region string `config:"region"`
	// URL of a service with the API of S3. Default: that of AWS.
	URL string `config:"url"`
	// Access key. Default: as for accounts of S3; none if url is set.
	AccessKey string `config:"accessKey,alias=access-key"`
	// Secret of the access key.
	SecretKey configfile.Secret `config:"secretKey,alias=secret-key"`
	// Profile of ~/.aws.
	Profile string `config:"profile"`
	// Put the bucket into the path of URLs, not into the host.
	ForcePathStyle bool `config:"forcePathStyle,alias=force-path-style" default:"true"`
}
