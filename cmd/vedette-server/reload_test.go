package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/logging"
	"github.com/vedette-io/vedette/server"
	"github.com/vedette-io/vedette/server/config"
	"github.com/vedette-io/vedette/server/metrics"
)

// recordedServer is what a reloader does to a server.
type recordedServer struct{ applied chan server.Reloadable }

func (s recordedServer) Apply(l server.Reloadable) { s.applied <- l }

// TestReloadAppliesOnlyValidChanges changes a configuration step by step.
func TestReloadAppliesOnlyValidChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "vedette-server.yml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("cache.kinds: [Pod]\n")
	cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	log, err := logging.New(cfg.Logging.Config, &logged, &logged)
	if err != nil {
		t.Fatal(err)
	}
	r, recorded := newReloader(cfg, "s1", metrics.New("test"), log), recordedServer{make(chan server.Reloadable, 10)}
	r.server = recorded
	for _, tt := range []struct {
		name, text  string
		live        string // what the server gets; empty for nothing
		log, health string
	}{
		{"nothing has changed", "cache.kinds: [Pod]\n", "", "", "map[inEffectSince:"},
		{"other kinds", "cache.kinds: [Pod, Job]\n", "{[Pod Job] {[default] [default]}}", `vedette-server.yml changed=[cache.kinds]`, "map[inEffectSince:"},
		{"half of the file", "cache.kinds: [Po", "", "the one before stays in effect", "the changed files cannot be used: vedette-server.yml:1"},
		{"the same half", "cache.kinds: [Po", "", "", "the changed files cannot be used"},
		{"a password in the wrong place", "sql: {password:hunter2}", "", "unknown key", `unknown key "sql.********"`},
		{"the file is restored", "cache.kinds: [Pod, Job]\n", "", "agree again", "map[inEffectSince:"},
		{"what needs a restart", "cache.kinds: [Pod, Job]\nserver.port: 1\n", "", `take effect after a restart" keys=server.port`, "restartRequired:[server.port]"},
		{"the same again", "cache.kinds: [Pod, Job]\nserver.port: 1\n", "", "", "restartRequired:[server.port]"},
		{"how accounts are shown", "cache.kinds: [Pod, Job]\ncredentials: {primaryAccountTypes: [a], challengeDestructiveActionsEnvironments: [b]}\n",
			"{[Pod Job] {[a] [b]}}", `changed="[credentials.primaryAccountTypes credentials.challengeDestructiveActionsEnvironments]"`, "map[inEffectSince:"},
		{"less is logged", "cache.all: true\nlogging.level: error\n", "{[all] {[default] [default]}}", "", "map[inEffectSince:"},
	} {
		logged.Reset()
		write(tt.text)
		if files := r.Reload(t.Context(), nil); !slices.Contains(files, file) {
			t.Errorf("%s: watches %q", tt.name, files)
		}
		got := ""
		if len(recorded.applied) > 0 {
			got = fmt.Sprint(<-recorded.applied)
		}
		if got != tt.live {
			t.Errorf("%s: the server got %s, want %s", tt.name, got, tt.live)
		}
		if tt.log == "" && logged.Len() > 0 || !strings.Contains(logged.String(), tt.log) {
			t.Errorf("%s: got the log %q, want %q", tt.name, logged.String(), tt.log)
		}
		if health := fmt.Sprint(r.healthDetails()); !strings.Contains(health, tt.health) || strings.Contains(health, "hunter2") ||
			strings.Contains(health, "error") != strings.Contains(tt.health, "cannot") && tt.name != "a password in the wrong place" {
			t.Errorf("%s: got %s, want %s", tt.name, health, tt.health)
		}
	}
}

func TestChangedFileReachesTheServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "vedette-server.yml")
	if err := os.WriteFile(file, []byte("cache.kinds: [Pod]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	log, err := logging.New(logging.Config{}, &bytes.Buffer{}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	r, recorded := newReloader(cfg, "s1", metrics.New("test"), log), recordedServer{make(chan server.Reloadable, 10)}
	r.server = recorded
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Watch(ctx) }()
	if err := os.WriteFile(file, []byte("cache.kinds: [Job]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-recorded.applied:
		if fmt.Sprint(got.Kinds) != "[Job]" {
			t.Errorf("got %v", got)
		}
	case <-time.After(time.Minute):
		t.Error("the change did not reach the server")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
