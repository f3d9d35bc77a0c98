package config

import (
	"strings"
	"testing"
)

// TestWarningAboutAccountNames checks that a server warns if everyone may read the names of accounts in
// its metrics, and only then.
func TestWarningAboutAccountNames(t *testing.T) {
	const open, names = "enabled: true, address: '*'", ", maxAccounts: 5"
	for settings, want := range map[string]bool{
		open + names: true,
		open:         false,
		"enabled: true, ssl: {enabled: true, certFile: c}" + names:                                  true, // on all addresses
		"enabled: true, ssl: {enabled: true, certFile: c, clientAuth: want, cacertFile: a}" + names: true,
		"enabled: true, ssl: {enabled: true, certFile: c, clientAuth: need, cacertFile: a}" + names: false,
		"enabled: true, address: '*', ssl: {clientAuth: none, certFile: c}" + names:                 true,
		"enabled: true" + names:                        false, // on the loopback address
		"enabled: true, address: 127.0.0.1" + names:    false,
		"enabled: false, address: '*', maxAccounts: 5": false,
	} {
		c, err := parse("c.yml", []byte("prometheus: {"+settings+"}"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(c.Warnings(), "\n"), "may read the names of accounts"); got != want {
			t.Errorf("%s: got warnings %q, want one: %v", settings, c.Warnings(), want)
		}
	}
}
