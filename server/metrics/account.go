package metrics

import "github.com/vedette-io/vedette/internal/metricset"

// Accounts has the metrics of single accounts, which are read for each scrape.
type Accounts struct {
	// Limit is how many accounts have such metrics; 0 for none.
	Limit int

	State, Freshness, Feeds, Objects, Drift *metricset.Sampled
	Without                                 *metricset.Sampled
}

func (m *Metrics) addAccounts() {
	const optional = " Only with prometheus.maxAccounts."
	m.Accounts = Accounts{
		State: m.SampledGauge("vedette_server_account_state",
			"Always 1; the label says the state of the account: reported, failing, stalled or orphaned, as in vedette_server_accounts."+optional,
			"account", "state"),
		Freshness: m.SampledGauge("vedette_server_account_freshness_seconds",
			"How far behind its cluster the account is, if an agent reports it."+optional, "account"),
		Feeds: m.SampledGauge("vedette_server_account_feeds",
			"Feeds of the account by state: pending, syncing, live, failing or denied. Read from the database every 30 s."+optional, "account", "state"),
		Objects: m.SampledGauge("vedette_server_account_objects", "Objects of the account in the database. Read from it every 30 s."+optional,
			"account"),
		Drift: m.SampledGauge("vedette_server_account_drift_objects",
			"Objects of the account that were found to differ from its cluster, and read anew, since its feeds exist. Read from the database every 30 s."+optional, "account"),
		Without: m.SampledGauge("vedette_server_accounts_without_metrics",
			"Accounts that have no metrics of their own, because there are more than prometheus.maxAccounts."+optional),
	}
}
