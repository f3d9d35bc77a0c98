package metrics

import "github.com/vedette-io/vedette/internal/metricset"

// AccountState has the metrics of single accounts, which are read for each scrape.
type AccountState struct {
	// Limit is how many accounts have such metrics; 0 for none.
	Limit int

	State, Error, Watches, Feeds *metricset.Sampled
	Without                      *metricset.Sampled
}

func (m *Metrics) addAccounts() {
	const optional = " Only with prometheus.maxAccounts."
	m.Accounts = AccountState{
		State: m.SampledGauge("vedette_agent_account_state",
			"Always 1; the label says the state of the account: reaching, registered, reporting, standby or refused."+optional, "account", "state"),
		Error:   m.SampledGauge("vedette_agent_account_error", "1 if the account has an error, otherwise 0."+optional, "account"),
		Watches: m.SampledGauge("vedette_agent_account_watches", "Watches of the account that are open at its API server."+optional, "account"),
		Feeds: m.SampledGauge("vedette_agent_account_feeds",
			"Feeds of the account by state, while the agent reports it: pending, syncing, live, failing or denied."+optional, "account", "state"),
		Without: m.SampledGauge("vedette_agent_accounts_without_metrics",
			"Accounts that have no metrics of their own, because there are more than prometheus.maxAccounts."+optional),
	}
}
