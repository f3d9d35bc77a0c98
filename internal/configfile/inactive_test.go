package configfile

import (
	"slices"
	"testing"
)

type inactiveSample struct {
	Works bool `config:"works"`
	Later struct {
		Enabled bool `config:"enabled,warn" default:"true"`
		Port    int  `config:"port" default:"8008"`
	} `config:"later,ignored"`
	Limit   int               `config:"limit,ignored,warn" default:"5"`
	Scopes  []string          `config:"scopes,ignored,warn"`
	Fields  map[string]string `config:"fields,ignored,warn"`
	Group   Ignored           `config:"group,ignored,warn"`
	Entries []struct {
		Name string `config:"name"`
		Live bool   `config:"live,ignored,warn"`
	} `config:"entries"`
}

func TestInactiveSettings(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		want       []string
	}{
		{"nothing is set", "", nil},
		{"active keys are not listed", "works: true", nil},
		{"keys without warn are not listed", "later.port: 1", nil},
		{"a group passes its status on", "later.enabled: false", []string{"later.enabled"}},
		{"defaults change nothing", "{later.enabled: true, limit: 5}", nil},
		{"a number that is not the default", "limit: 6", []string{"limit"}},
		{"empty lists and maps change nothing", "{scopes: [], fields: {}}", nil},
		{"lists and maps", "{scopes: [a], fields: {a: b}}", []string{"scopes", "fields"}},
		{"a group that is switched off", "group: {a: {enabled: false, accounts: [x]}, b: []}", nil},
		{"a group that is switched on", "group: {enabled: true}", []string{"group"}},
		{"a group with something in it", "group: {a: {b: [x]}}", []string{"group"}},
		{"entries of a list share a path", "entries: [{name: a, live: true}, {name: b}, {name: c, live: true}]", []string{"entries[].live"}},
	} {
		var config inactiveSample
		report := Parse("c.yml", []byte(tt.file), Options{}, &config)
		if err := report.Err(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := InactiveSettings(&config, report); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestInactiveSettingsFromEnvironment(t *testing.T) {
	var config inactiveSample
	env := func(name string) (string, bool) { return "7", name == "T_LIMIT" }
	report := Parse("c.yml", nil, Options{Env: env, EnvPrefix: "T_"}, &config)
	if got := InactiveSettings(&config, report); !slices.Equal(got, []string{"limit"}) {
		t.Errorf("got %q, want limit", got)
	}
}
