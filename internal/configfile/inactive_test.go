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

// keysOfInactive returns the keys, with a sign for those that users rely on.
func keysOfInactive(settings []Inactive) (keys []string) {
	for _, s := range settings {
		key := s.Key
		if !s.IsReliedOn {
			key += " (note)"
		}
		keys = append(keys, key)
	}
	return keys
}

func TestSettingsWithoutUseAreListed(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		want       []string
	}{
		{"nothing is set", "", nil},
		{"active keys are not listed", "works: true", nil},
		{"keys without warn", "later.port: 1", []string{"later.port (note)"}},
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
		if got := keysOfInactive(InactiveSettings(&config, report, Reasons{"entries[].live": "Why."})); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestInactiveSettingsFromEnvironment(t *testing.T) {
	var config inactiveSample
	env := func(name string) (string, bool) { return "7", name == "T_LIMIT" }
	report := Parse("c.yml", nil, Options{Env: env, EnvPrefix: "T_"}, &config)
	if got := keysOfInactive(InactiveSettings(&config, report, nil)); !slices.Equal(got, []string{"limit"}) {
		t.Errorf("got %q, want limit", got)
	}
}

// TestGroupReasonCountsForItsKeys checks that the reason of a group is that of its keys, and that they are one entry.
func TestGroupReasonCountsForItsKeys(t *testing.T) {
	var config inactiveSample
	report := Parse("c.yml", []byte("limit: 6\nlater: {port: 1,\n  enabled: false}\nentries: [{name: a}, {live: true}]"), Options{}, &config)
	reasons := Reasons{"later": "Not in this version.", "entries[].live": "It is always live."}
	var got []string
	for _, s := range InactiveSettings(&config, report, reasons) {
		got = append(got, s.String())
	}
	want := []string{"c.yml:3:12: later: Not in this version.", "c.yml:1:8: limit: This program does not use it.", "c.yml:4:29: entries[].live: It is always live."}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	want = []string{"c.yml:1:8: limit: This program does not use it.", "c.yml:2:15: later.port: Not in this version.",
		"c.yml:3:12: later.enabled: Not in this version.", "c.yml:4:29: entries[1].live: It is always live."}
	if got := report.Unused(reasons); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSwitchedOffSettingsAreNamed checks what is said about settings whose switch is off.
func TestSwitchedOffSettingsAreNamed(t *testing.T) {
	for _, tt := range []struct {
		file string
		off  bool
		want []string
	}{
		{"server: {port: 1, key: x}", true, []string{"c.yml:1:16: server.port, server.keyFile have no effect, because it is off"}},
		{"name: x\nserver: {port: 1}", true, []string{"c.yml:2:16: server.port has no effect, because it is off"}},
		{"server: {port: 1}", false, nil},
		{"server: {port: 7002}", true, nil},           // the default
		{"server: {tls: {enabled: true}}", true, nil}, // does not depend on it
		{"{name: x, future: {speed: 1}}", true, nil},  // has no effect anyway
	} {
		var s sample
		report := Parse("c.yml", []byte(tt.file), Options{}, &s)
		got := WithoutEffect(&s, report, []Switch{{Keys: "server.", IsOff: tt.off, Except: "server.tls.", Because: "it is off"}})
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.file, got, tt.want)
		}
	}
}
