// Package prometheus runs a real Prometheus for tests, which scrapes real programs. Its tests check
// that each panel of the dashboards in deploy/grafana has data, and that the alerts in
// deploy/prometheus fire.
package prometheus
