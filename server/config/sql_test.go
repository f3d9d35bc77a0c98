package config

import (
	"strings"
	"testing"
)

// TestConnectionPoolProblems checks wrong values of sql.connectionPools and of the keys of a pool.
func TestConnectionPoolProblems(t *testing.T) {
	for value, want := range map[string]string{
		"[x]":                             `"sql.connectionPools" must be a group of keys`,
		"many":                            `"sql.connectionPools" must be a group of keys`,
		"{default: many}":                 `"sql.connectionPools.default" must be a group of keys`,
		"{default: {jdbcUrl: [x]}}":       `"sql.connectionPools.default.jdbcUrl" must be`,
		"{default: {jdbcUrl: not-a-url}}": "this is not the URL of a database",
		"{default: {default: maybe}}":     `"sql.connectionPools.default.default" must be true or false`,
		"{default: {user: {a: b}}}":       `"sql.connectionPools.default.user" must be`,
		"{default: {maxPoolSize: many}}":  `"sql.connectionPools.default.maxPoolSize" must be a whole number`,
		"{default: {jdbcURI: x}}":         "unknown key",
		"{default: {jdbcUrl: 'jdbc:mysql://h/d', user: u}, cats: {jdbcUrl: 'jdbc:mysql://h2/d'}}": "",
	} {
		c, err := parse("c.yml", []byte("sql.connectionPools: "+value), nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", value, err, want)
		}
		if err == nil && c.Database().Reveal() != "mysql://u@h/d" {
			t.Errorf("%s: got %s", value, c.Database().Reveal())
		}
	}
}

// TestReadReplicaProblems checks sql.readReplicas. No message quotes a URL, which may contain a password.
func TestReadReplicaProblems(t *testing.T) {
	for _, tt := range []struct{ sql, want string }{
		{"{url: 'postgres://h/d', readReplicas: ['postgres://r1/d', 'jdbc:postgresql://r2/d'], user: u, password: secret}", ""},
		{"{url: 'postgres://h/d', readReplicas: ['mysql://r1/d']}", `"sql.readReplicas[0]": it must be a postgres URL`},
		{"{url: 'postgres://h/d', readReplicas: ['postgres://r1/d', 'secret']}", `"sql.readReplicas[1]": this is not the URL of a database`},
		{"{url: 'sqlite:/f', readReplicas: ['sqlite:/secret']}", `"sql.readReplicas[0]": SQLite has no replicas`},
		{"{readReplicas: ['postgres://r1/d']}", `"sql.readReplicas[0]": SQLite has no replicas`},
		{"{connectionPools: {default: {jdbcUrl: 'jdbc:mysql://h/d', user: u, password: secret}}, readReplicas: ['mysql://r1/d']}", ""},
	} {
		c, err := parse("c.yml", []byte("sql: "+tt.sql), nil)
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: got %v, want %q", tt.sql, err, tt.want)
		}
		if err != nil {
			continue
		}
		for _, replica := range c.Replicas() {
			if !strings.Contains(replica, "u:secret@r") {
				t.Errorf("%s: got %s, want it with user and password", tt.sql, replica)
			}
		}
	}
}

// TestShardProblems checks sql.shards. No message quotes a URL, which may contain a password.
func TestShardProblems(t *testing.T) {
	for _, tt := range []struct{ sql, want string }{
		{"{url: 'postgres://h/d', shards: [{name: b, url: 'jdbc:mysql://h2/d', readReplicas: ['mysql://r/d']}]}", ""},
		{"{url: 'postgres://h/d', shards: [{url: 'postgres://secret/d'}]}", `"sql.shards[0]": the name "" must consist of`},
		{"{url: 'postgres://h/d', shards: [{name: B_1, url: 'postgres://secret/d'}]}", `"sql.shards[0]": the name "B_1" must consist of`},
		{"{url: 'postgres://h/d', shards: [{name: b, url: 'postgres://h2/d'}, {name: b, url: 'postgres://secret/d'}]}", `"sql.shards[1]": the name b is used twice`},
		{"{url: 'postgres://h/d', shards: [{name: b, url: secret}]}", `"sql.shards[0]": this is not the URL of a database`},
		{"{url: 'postgres://h/d', shards: [{name: b, url: 'sqlite:/secret'}]}", `"sql.shards[0]": a file of SQLite is for one server`},
		{"{shards: [{name: b, url: 'postgres://secret/d'}]}", `"sql.shards[0]": SQLite is one file for one server`},
		{"{url: 'postgres://h/d', shards: [{name: b, url: 'postgres://h2/d', readReplicas: ['mysql://secret/d']}]}", `"sql.shards[0].readReplicas[0]": it must be a postgres URL`},
	} {
		c, err := parse("c.yml", []byte("sql: "+tt.sql), nil)
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: got %v, want %q", tt.sql, err, tt.want)
		}
		if err != nil && !strings.Contains(err.Error(), "c.yml:1:") {
			t.Errorf("%s: got %v, which does not say where that is", tt.sql, err)
		}
		if err == nil && len(c.Shards()) != 1 {
			t.Errorf("%s: got %d databases, want 1", tt.sql, len(c.Shards()))
		}
	}
}
