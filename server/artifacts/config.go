package artifacts

import (
	"net/netip"
	"net/url"

	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/server/artifacts/egress"
	"github.com/vedette-io/vedette/server/membudget"
)

// Config lists the accounts, and limits what artifacts cost. The zero value has the accounts that
// exist without configuration.
type Config struct {
	Disabled bool

	GitHub    []GitHubAccount
	GitLab    []GitLabAccount
	Bitbucket []BitbucketAccount
	HTTP      []HTTPAccount
	// HTTPEnabled adds an account without credentials if no account of HTTP has any.
	HTTPEnabled bool
	Helm        []HelmAccount
	Git         []GitAccount
	GCS         []GCSAccount
	S3          []S3Account
	Oracle      []OracleAccount
	// Front50URL is the address of Front50, for pipeline templates. Nil means none.
	Front50URL *url.URL
	// Store is the artifact store of Spinnaker's other services; nil means none.
	Store *StoreConfig

	Policy egress.Policy
	Limits egress.Limits
	// MaxIndexBytes is the size of a Helm repository's index; 0 means 64 MiB.
	MaxIndexBytes int64
	// MaxGitObjectBytes is the size of a file in a Git repository; 0 means 64 MiB.
	MaxGitObjectBytes int64
	// MaxConcurrent is the number of artifacts that are fetched at the same time; 0 means 16.
	MaxConcurrent int
	// Memory is how many bytes this process may take; 0 means that nobody knows.
	Memory int64
	// TempDir holds clones of Git repositories while they are archived. Empty means the system's.
	TempDir string
}

// New returns the accounts of a configuration.
func New(cfg Config) *Accounts {
	if cfg.MaxConcurrent == 0 {
		cfg.MaxConcurrent = 16
	}
	if cfg.MaxIndexBytes == 0 {
		cfg.MaxIndexBytes = 64 << 20
	}
	if cfg.MaxGitObjectBytes == 0 {
		cfg.MaxGitObjectBytes = 64 << 20
	}
	a := &Accounts{places: newPlaces(cfg.MaxConcurrent), memory: newMemory(membudget.Fit(memoryBytes, cfg.Memory)), enabled: !cfg.Disabled}
	if cfg.Disabled {
		return a
	}
	client := egress.New(cfg.Policy, cfg.Limits)
	// Addresses that only the operator names need no policy.
	trusting := egress.New(egress.Policy{Allowed: everywhere}, cfg.Limits)
	a.store = newObjectStore(cfg.Store, trusting)
	a.sources = append(a.sources, fileSources(cfg, client)...)
	a.sources = append(a.sources, repositorySources(cfg, client, a.memory)...)
	a.sources = append(a.sources, bucketSources(cfg, client, trusting)...)
	a.sources = append(a.sources, embeddedSource{a.store})
	if cfg.Front50URL != nil {
		a.sources = append(a.sources, front50Source{cfg.Front50URL, trusting})
	}
	a.sources = append(a.sources, namedSources...)
	return a
}

// fileSources returns the accounts of services that serve single files.
func fileSources(cfg Config, client *egress.Client) []source {
	var sources []source
	for _, account := range cfg.GitHub {
		sources = append(sources, account.source(account.Restrictions.client(cfg, client)))
	}
	for _, account := range cfg.GitLab {
		sources = append(sources, account.source(account.Restrictions.client(cfg, client)))
	}
	for _, account := range cfg.Bitbucket {
		sources = append(sources, account.source(account.Restrictions.client(cfg, client)))
	}
	for _, account := range withNoAuth(cfg) {
		sources = append(sources, account.source(account.Restrictions.client(cfg, client)))
	}
	return sources
}

func repositorySources(cfg Config, client *egress.Client, memory *fair.Line) []source {
	var sources []source
	disk := newDisk(client.Limits().MaxBytes)
	for _, account := range cfg.Git {
		sources = append(sources, account.source(cfg, client, memory, disk))
	}
	for _, account := range cfg.Helm {
		sources = append(sources, account.source(cfg, client, memory))
	}
	return sources
}

// bucketSources returns the accounts of buckets. Their references name a bucket and a path; the
// host is the operator's choice.
func bucketSources(cfg Config, client, trusting *egress.Client) []source {
	var sources []source
	for _, account := range cfg.GCS {
		// The API redirects, so that the policy counts unless the operator chose another host.
		if account.Endpoint != "" {
			sources = append(sources, account.source(trusting))
			continue
		}
		sources = append(sources, account.source(client))
	}
	for _, account := range cfg.S3 {
		sources = append(sources, account.source(trusting))
	}
	for _, account := range cfg.Oracle {
		sources = append(sources, account.source(trusting))
	}
	return sources
}

var everywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
