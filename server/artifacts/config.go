package artifacts

import (
	"net/netip"
	"net/url"

	"github.com/vedette-io/vedette/internal/configfile"
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
	// Store is the artifact store of Spinnaker's other services.
	Store StoreConfig

	Policy egress.Policy
	Limits Limits
	// Memory is how many bytes this process may take; 0 means that nobody knows.
	Memory int64
}

// New returns the accounts of a configuration.
func New(cfg Config) *Accounts {
	cfg.Limits = configfile.WithDefaults(cfg.Limits)
	a := &Accounts{places: newPlaces(cfg.Limits.MaxConcurrent), enabled: !cfg.Disabled,
		memory: newMemory(membudget.Fit(memoryBytes, cfg.Memory))}
	if cfg.Disabled {
		return a
	}
	client := egress.New(cfg.Policy, cfg.Limits.egress())
	// Addresses that only the operator names need no policy.
	trusting := egress.New(egress.Policy{Allowed: everywhere}, cfg.Limits.egress())
	a.store = newObjectStore(cfg.Store, trusting)
	a.fetchers = append(a.fetchers, fileFetchers(cfg, client)...)
	a.fetchers = append(a.fetchers, repositoryFetchers(cfg, client, a.memory)...)
	a.fetchers = append(a.fetchers, bucketFetchers(cfg, client, trusting)...)
	a.fetchers = append(a.fetchers, embeddedFetcher{a.store})
	if cfg.Front50URL != nil {
		a.fetchers = append(a.fetchers, front50Fetcher{cfg.Front50URL, trusting})
	}
	a.fetchers = append(a.fetchers, namedFetchers...)
	return a
}

// fileFetchers returns the accounts of services that serve single files.
func fileFetchers(cfg Config, client *egress.Client) []fetcher {
	var fetchers []fetcher
	for _, account := range cfg.GitHub {
		fetchers = append(fetchers, account.fetcher(cfg, client))
	}
	for _, account := range cfg.GitLab {
		fetchers = append(fetchers, account.fetcher(cfg, client))
	}
	for _, account := range cfg.Bitbucket {
		fetchers = append(fetchers, account.fetcher(cfg, client))
	}
	for _, account := range withNoAuth(cfg) {
		fetchers = append(fetchers, account.fetcher(cfg, client))
	}
	return fetchers
}

func repositoryFetchers(cfg Config, client *egress.Client, memory *fair.Line) []fetcher {
	var fetchers []fetcher
	disk := newDisk(client.Limits().MaxBytes)
	for _, account := range cfg.Git {
		fetchers = append(fetchers, account.fetcher(cfg, client, memory, disk))
	}
	for _, account := range cfg.Helm {
		fetchers = append(fetchers, account.fetcher(cfg, client, memory))
	}
	return fetchers
}

// bucketFetchers returns the accounts of buckets. Their references name a bucket and a path; the
// host is the operator's choice.
func bucketFetchers(cfg Config, client, trusting *egress.Client) []fetcher {
	var fetchers []fetcher
	for _, account := range cfg.GCS {
		// The API redirects, so that the policy counts unless the operator chose another host.
		if account.Endpoint != "" {
			fetchers = append(fetchers, account.fetcher(trusting))
			continue
		}
		fetchers = append(fetchers, account.fetcher(client))
	}
	for _, account := range cfg.S3 {
		fetchers = append(fetchers, account.fetcher(trusting))
	}
	for _, account := range cfg.Oracle {
		fetchers = append(fetchers, account.fetcher(trusting))
	}
	return fetchers
}

var everywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
