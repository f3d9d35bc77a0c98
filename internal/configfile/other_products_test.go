package configfile

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

func TestOnlyOurUnknownKeysAreProblems(t *testing.T) {
	renames := []Rename{{From: "server.listenOnPort", To: "server.port"}, {From: "older.key", To: "server.port"}}
	for _, tt := range []struct {
		name, file string
		foreign    []string
		problem    string
	}{
		{"groups of other products", "cats: {x: 1}\nswagger.title: y", []string{"cats", "swagger.title"}, ""},
		{"a misspelt group", "sever: {port: 1}", nil, `a.yml:1:1: unknown key "sever": did you mean "server"?`},
		{"a key in the wrong place", "tryTimes: 2\ndepth: 1\nport: 7", nil, `a.yml:3:1: unknown key "port": did you mean "server.port"?`},
		{"like a key that is renamed", "server.listen-port: 1", nil, `unknown key "server.listen-port": did you mean "listenOnPort"?`},
		{"in our group", "server: {porcelain: 1}", nil, `a.yml:1:10: unknown key "server.porcelain"`},
		{"in our group, of another product", "server: {tomcat: {x: 1}, Tom-Cat.y: 2}", []string{"server.tomcat.x", "server.tomcat.y"}, ""},
		{"our value below a group of both", "server.tomcat.ours: {x: y}", nil, `"server.tomcat.ours" must be a single value`},
		{"not only the same first letters", "server: {tomcatt: 1}", nil, `unknown key "server.tomcatt"`},
		{"next to a key of ours", "spring: {application.name: x, config: {name: y}}", []string{"spring.application.name", "spring.config.name"}, ""},
		{"a group in place of a value", "level: {com.netflix: WARN}\nname: x", []string{"level.com.netflix"}, ""},
		{"the same with dots", "level.com.netflix: WARN", []string{"level.com.netflix"}, ""},
		{"a group in place of another value", "name: {com.netflix: WARN}", nil, `"name" must be a single value`},
		{"a key without an effect is not suggested", "plan: 1\nfuturo: 1", []string{"plan", "futuro"}, ""},
		{"300 characters", strings.Repeat("k", 300) + ": 1", []string{strings.Repeat("k", 100) + "…"}, ""},
		{"spaces, unicode and SQL", "\"a b\": 1\n\"ü'; DROP TABLE x; --\": 2\n\"\": 3", []string{"a b", "ü'; DROP TABLE x; --", ""}, ""},
	} {
		var s sample
		r := Parse("a.yml", []byte(tt.file), Options{OtherProductKeys: sampleOptions.OtherProductKeys, Renames: renames}, &s)
		if got := r.UnknownKeys(); !slices.Equal(got, tt.foreign) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.foreign)
		}
		if err := r.Err(); (err != nil) != (tt.problem != "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.problem)
		}
	}
}

// unusedKeys gives LogUnused a report.
type unusedKeys struct{ *Report }

func (unusedKeys) InactiveSettings() []Inactive { return nil }

func TestManyUnknownKeysAreOneLine(t *testing.T) {
	var file strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&file, "level.logger%d: WARN\n", i)
	}
	var s sample
	r := Parse("a.yml", []byte(file.String()), sampleOptions, &s)
	var log bytes.Buffer
	LogUnused(slog.New(slog.NewTextHandler(&log, nil)), unusedKeys{r}, "docs")
	if got := strings.Count(log.String(), "level=WARN"); got != 1 || !strings.Contains(log.String(), "level.logger0, level.logger1,") ||
		!strings.Contains(log.String(), "level.logger49 and 950 more") {
		t.Errorf("got %d warnings: %s", got, log.String())
	}
}
