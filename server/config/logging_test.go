package config

import (
	"strings"
	"testing"
)

func parseText(text string) (*Config, error) { return parse("server.yml", []byte(text), testEnv) }

// TestSharedSettingsAreChecked checks that the groups that both programs have are checked.
func TestSharedSettingsAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		"logging.maxSizeMb: -1":                                                 "must be from 0 to",
		"prometheus.maxAccounts: -1":                                            "must be from 0 to",
		"prometheus.ssl.enabled: true":                                          `"prometheus.ssl.enabled" is true, but "prometheus.ssl.certFile" is missing`,
		"prometheus.ssl.clientAuth: need":                                       "client certificates require TLS",
		"server.ssl.clientAuth: sometimes":                                      "the mode of client certificates must be",
		"secrets.vault.enabled: true":                                           `"secrets.vault.enabled" is true, but "secrets.vault.url" is missing`,
		"secrets.vault: {enabled: true, url: 'http://v', authMethod: USERPASS}": `"secrets.vault.username" is missing: USERPASS needs it`,
	} {
		if _, err := parseText(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// TestMetricsArePrivateWithoutTLS checks that metrics are for this machine only, unless they have TLS or an address.
func TestMetricsArePrivateWithoutTLS(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"prometheus.enabled: true": "127.0.0.1:8008",
		"prometheus: {enabled: true, port: 9, address: '*'}":                  ":9",
		"prometheus: {enabled: true, ssl: {enabled: true, certFile: m.crt}}":  ":8008",
		"prometheus: {enabled: false, ssl: {enabled: true, certFile: m.crt}}": "",
	} {
		c, err := parseText(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.MetricsListen().Address; got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	c, err := parseText("prometheus: {maxAccounts: 7, ssl: {keyFilePassword: p}}")
	if err != nil || c.Prometheus.MaxAccounts != 7 || c.Prometheus.SSL.KeyPassword.Reveal() != "p" {
		t.Errorf("got %+v, %v", c, err)
	}
}
