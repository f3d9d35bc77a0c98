package docs

import (
	"testing"

	agentmetrics "github.com/vedette-io/vedette/agent/metrics"
	"github.com/vedette-io/vedette/internal/golden"
	servermetrics "github.com/vedette-io/vedette/server/metrics"
)

const metricsIntro = `# Metrics

Both programs serve metrics for Prometheus, on a port of their own, if the configuration says so:

` + "```yaml" + `
# armory-agent.yml
prometheus:
  enabled: true # port 8008, all addresses
` + "```" + `

` + "```yaml" + `
# vedette-server.yml
prometheus:
  enabled: true # port 8008
  address: "*"  # without it, only this machine can read them
` + "```" + `

With ` + "`management.server.port`" + `, the [port for probes](securing.md#the-port-for-probes-and-metrics) has them, too.

` + "`/metrics` and `/prometheus_metrics`" + ` have the same answer. Reading them takes milliseconds and sends nothing to a database or to a
cluster. Labels have few values: none of them names a namespace, an object or a user
([decision 91](decisions/0091-labels-of-metrics.md)). Whoever reaches the port can read the numbers, so keep it inside your network, or
let it require certificates:

` + "```yaml" + `
prometheus:
  enabled: true
  ssl:
    enabled: true
    certFile: /certs/metrics.crt # read again when they change
    keyFile: /certs/metrics.key
    clientAuth: need
    cacertFile: /certs/prometheus-ca.crt
` + "```" + `

With ` + "`prometheus.maxAccounts: 500`" + `, the first 500 accounts by name have metrics of their own, with a label ` + "`account`" + `: eight series each at
the agent, and eight at the server. They are off by default, because 5,000 accounts are 40,000 series, and because accounts' names are
then readable without permissions in Spinnaker ([decision 91](decisions/0091-labels-of-metrics.md)). An alert that names the
account, for example: ` + "`vedette_server_account_freshness_seconds > 60`" + `.

` + "`deploy/grafana`" + ` has dashboards for both programs, and ` + "`deploy/prometheus/alerts.yml`" + ` has alert rules. The dashboard of the Scale Agent
works too: an agent has its metrics under their old names (` + "`kubesvc_`" + `).

Both programs also have the metrics of Prometheus' Go client about the runtime and the process (` + "`go_`, `process_`" + `). They include
` + "`go_memstats_gc_cpu_fraction` and `go_memstats_lookups_total`" + `, which newer clients leave out.

`

// TestMetricsPageListsAllMetrics checks that metrics.md lists the metrics of both programs.
func TestMetricsPageListsAllMetrics(t *testing.T) {
	page := metricsIntro + "## Agent\n\n" + agentmetrics.New("").Markdown() + "\n## Server\n\n" + servermetrics.New("").Markdown()
	golden.Compare(t, "metrics.md", page)
}
