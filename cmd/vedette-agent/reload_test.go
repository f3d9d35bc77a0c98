package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/agent/metrics"
	"github.com/vedette-io/vedette/internal/configreload"
	"github.com/vedette-io/vedette/internal/logging"
)

// recordedAgent is what a reloader does to an agent.
type recordedAgent struct {
	accounts []agent.Account
	sets     int
	rereads  int
	status   configreload.Status
}

func (a *recordedAgent) SetAccounts(_ context.Context, accounts []agent.Account) {
	a.accounts = accounts
	a.sets++
}

func (a *recordedAgent) RereadCredentials() { a.rereads++ }

func (a *recordedAgent) SetConfigStatus(s configreload.Status) { a.status = s }

// names returns the accounts with their kubeconfigs.
func (a *recordedAgent) names() string {
	var names []string
	for _, account := range a.accounts {
		names = append(names, string(account.Name)+"="+account.Access.KubeconfigFile)
	}
	return strings.Join(names, " ")
}

// TestReloadAppliesOnlyValidChanges changes a configuration step by step.
func TestReloadAppliesOnlyValidChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.yml")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const a, b = "{name: a, kubeconfigFile: /a}", "{name: b, kubeconfigFile: /b}"
	accounts := func(list ...string) string { return "kubernetes.accounts: [" + strings.Join(list, ", ") + "]\n" }
	write(accounts(a))
	cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	log, err := logging.New(cfg.LogConfig(os.LookupEnv), &logged, &logged)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := newAgentConfig(cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	recorded := &recordedAgent{accounts: settings.Accounts}
	r := newReloader(cfg, settings.Accounts, recorded, metrics.New("test"), log)
	since := recorded.status.Since
	forServer := map[string]string{ // what the server is told besides "in effect"
		"half of the file": "agent.yml:1", "the same half": "agent.yml:1", "an empty file": "agent.yml has become empty",
		"a password in the wrong place":               `agent.yml:1:20: unknown key "clouddriver.auth.********"`,
		"an account becomes invalid, another changes": "[a]", "what needs a restart": "[clouddriver.grpc server.port]",
		"the same again": "[clouddriver.grpc server.port]",
	}
	for _, tt := range []struct {
		name, content string
		names         string
		sets          int    // since the step before
		log           string // must be logged, once; nothing is logged if it is empty
		failed        bool
	}{
		{"nothing has changed", accounts(a), "a=/a", 0, "", false},
		{"an account comes", accounts(a, b), "a=/a b=/b", 1, "agent.yml changed=[kubernetes.accounts]", false},
		{"half of the file", accounts(a, b)[:25], "a=/a b=/b", 0, "the one before stays in effect", true},
		{"the same half", accounts(a, b)[:25], "a=/a b=/b", 0, "", true},
		{"a password in the wrong place", "clouddriver.auth: {token:hunter2}\n", "a=/a b=/b", 0, "unknown key", true},
		{"an empty file", "", "a=/a b=/b", 0, "agent.yml has become empty", true},
		{"the file is restored", accounts(a, b), "a=/a b=/b", 0, "agree again", false},
		{"an account becomes invalid, another changes", accounts("{name: a, kubeconfigFile: /a, insecure: maybe}", "{name: b, kubeconfigFile: /c}"), "b=/c a=/a", 1, "account is invalid", false},
		{"both go", "kubernetes.accounts: []\n", "", 1, "the changed configuration is in effect", false},
		{"what needs a restart", "kubernetes.accounts: []\nclouddriver.grpc: other:1\nserver.port: 1\n", "", 0, `keys="clouddriver.grpc, server.port"`, false},
		{"the same again", "kubernetes.accounts: []\nclouddriver.grpc: other:1\nserver.port: 1\nlogging.level: info\n", "", 0, "", false},
		{"less is logged", accounts(a) + "logging.level: error\n", "a=/a", 1, "", false},
	} {
		logged.Reset()
		before := recorded.sets
		write(tt.content)
		files := r.Reload(t.Context(), []string{file})
		if got := recorded.names(); got != tt.names || recorded.sets-before != tt.sets {
			t.Errorf("%s: got accounts %q after %d changes, want %q after %d", tt.name, got, recorded.sets-before, tt.names, tt.sets)
		}
		if got := strings.Count(logged.String(), tt.log); tt.log == "" && logged.Len() > 0 || tt.log != "" && got != 1 {
			t.Errorf("%s: got the log %q, want %q", tt.name, logged.String(), tt.log)
		}
		if (recorded.status.Error != "") != tt.failed || recorded.status.Since.Before(since) {
			t.Errorf("%s: got %+v, want an error: %t", tt.name, recorded.status, tt.failed)
		}
		s := recorded.status
		if told := s.PublicError + fmt.Sprint(s.RejectedAccounts, s.RestartKeys); !strings.Contains(told, cmp.Or(forServer[tt.name], "[] []")) || strings.Contains(told, "hunter2") {
			t.Errorf("%s: the server is told %s, want %q", tt.name, told, forServer[tt.name])
		}
		if all := fmt.Sprint(files); !strings.Contains(all, file) || !strings.Contains(all, "agent-local.yml") {
			t.Errorf("%s: watches %s, want the file and its overlays", tt.name, all)
		}
		since = recorded.status.Since
	}
	if recorded.rereads == 0 {
		t.Error("credentials were not read again")
	}
	log.Info("must not be logged")
	if logged.Len() > 0 {
		t.Errorf("got %q, want only errors", logged.String())
	}
}

// TestFilesInTheWay checks that the accounts stay whatever takes the place of their file, and that they
// are not disturbed when it returns.
func TestFilesInTheWay(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "agent.yml")
	const good = "kubernetes.accounts: [{name: a, kubeconfigFile: /a}]\n"
	write := func(text string) error { return os.WriteFile(file, []byte(text), 0o600) }
	if err := write(good); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	log, err := logging.New(logging.Config{}, &logged, &logged)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := newAgentConfig(cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	recorded := &recordedAgent{accounts: settings.Accounts}
	r := newReloader(cfg, settings.Accounts, recorded, metrics.New("test"), log)
	for name, tt := range map[string]struct {
		replace func() error
		want    string
	}{
		"a directory":               {func() error { return os.Mkdir(file, 0o700) }, "is a directory"},
		"a link to nowhere":         {func() error { return os.Symlink(filepath.Join(dir, "nowhere"), file) }, "symbolic link to a file that does not exist"},
		"nothing":                   {func() error { return nil }, "agent.yml"},
		"bytes that are no text":    {func() error { return write("\x00\xff\xfe") }, "not valid YAML"},
		"a file that ends early":    {func() error { return write(good[:40]) }, "not valid YAML"},
		"white space":               {func() error { return write("  \n# nothing\n") }, "has become empty"},
		"a key that is set twice":   {func() error { return write(good + good) }, "twice"},
		"an alias of itself":        {func() error { return write("logging: &a {level: *a}\n") }, "refers to itself"},
		"more than a file may have": {func() error { return write(good + "# " + strings.Repeat("x", 9<<20)) }, "larger than 8 MiB"},
	} {
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
		if err := tt.replace(); err != nil {
			t.Fatal(err)
		}
		logged.Reset()
		r.Reload(t.Context(), []string{file})
		if recorded.sets > 0 || !strings.Contains(recorded.status.Error, tt.want) || !strings.Contains(logged.String(), "stays in effect") {
			t.Errorf("%s: got %d changes of accounts, %q, want %q", name, recorded.sets, recorded.status.Error, tt.want)
		}
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
		if err := write(good); err != nil {
			t.Fatal(err)
		}
		r.Reload(t.Context(), []string{file})
		if recorded.sets > 0 || recorded.status.Error != "" {
			t.Errorf("%s: got %d changes of accounts, %q when the file returns", name, recorded.sets, recorded.status.Error)
		}
	}
}

// TestSecretsStayOutOfTheLog checks that secrets of engines are masked in log lines once a reload has
// found them, and those before them, too.
func TestSecretsStayOutOfTheLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.yml")
	write := func(secret string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("clouddriver.auth.token: encrypted:noop!"+secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first-secret")
	cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	log, err := logging.New(logging.Config{}, &logged, &logged)
	if err != nil {
		t.Fatal(err)
	}
	logging.SetSecrets(log, cfg.SecretValues()) // as package program does
	r := newReloader(cfg, nil, &recordedAgent{}, metrics.New("test"), log)
	write("second-secret")
	r.Reload(t.Context(), nil)
	log.Info("tokens", "first", "first-secret", "second", "second-secret")
	if got := logged.String(); !strings.Contains(got, "first=*** second=***") {
		t.Errorf("got %s", got)
	}
}

// TestChangedFileReachesTheAgent checks that a changed file reaches the agent, and that credentials of accounts count.
func TestChangedFileReachesTheAgent(t *testing.T) {
	dir := t.TempDir()
	file, kubeconfig := filepath.Join(dir, "agent.yml"), filepath.Join(dir, "k")
	for path, content := range map[string]string{file: "kubernetes.accounts: [{name: a, kubeconfigFile: " + kubeconfig + "}]\n", kubeconfig: "{}"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	log, err := logging.New(logging.Config{}, &bytes.Buffer{}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	settings, err := newAgentConfig(cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	watched := &notifiedAgent{events: make(chan string, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	r := newReloader(cfg, settings.Accounts, watched, metrics.New("test"), log)
	watched.expect(t, "status")
	go func() { done <- r.Watch(ctx) }()
	watched.expect(t, "status")
	watched.expect(t, "reread") // the files are watched
	if err := os.WriteFile(kubeconfig, []byte("{apiVersion: v1}"), 0o600); err != nil {
		t.Fatal(err)
	}
	watched.expect(t, "reread")
	if err := os.WriteFile(filepath.Join(dir, "agent-local.yml"), []byte("kubernetes.accounts: [{name: b}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	watched.expect(t, "b")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestKubeconfigsThatWereReadBefore checks that accounts compare their kubeconfig with what they have read
// once it is watched: at the start, and when a reload adds an account. It may have been replaced in
// between, and would look unchanged from then on.
func TestKubeconfigsThatWereReadBefore(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "agent.yml")
	write := func(path, content string) string {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first, second := write(filepath.Join(dir, "first"), "{apiVersion: v1}"), write(filepath.Join(dir, "second"), "{apiVersion: v1}")
	accounts := func(list ...string) string { return "kubernetes.accounts: [" + strings.Join(list, ", ") + "]\n" }
	a, b := fmt.Sprintf("{name: a, kubeconfigFile: %q}", first), fmt.Sprintf("{name: b, kubeconfigFile: %q}", second)
	write(file, accounts(a))
	cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	settings, err := newAgentConfig(cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	watched := &notifiedAgent{events: make(chan string, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	r := newReloader(cfg, settings.Accounts, watched, metrics.New("test"), log)
	write(first, "{apiVersion: v1, kind: Config}") // the account may have read the kubeconfig before
	go func() { done <- r.Watch(ctx) }()
	watched.expect(t, "reread")
	write(file, accounts(a, b))
	watched.expect(t, "b")
	watched.expect(t, "reread") // because of the changed file
	watched.expect(t, "reread") // because of the kubeconfig that is watched from now on
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestAccountsWrittenInPieces rewrites a file of 500 accounts in place. Each piece is valid YAML with fewer
// accounts, and none of them ends.
func TestAccountsWrittenInPieces(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.yml")
	entries := func(from, to int) (text string) {
		for i := from; i < to; i++ {
			text += fmt.Sprintf("- {name: account-%d, kubeconfigFile: /k}\n", i)
		}
		return text
	}
	synctest.Test(t, func(t *testing.T) {
		if err := os.WriteFile(file, []byte("kubernetes.accounts:\n"+entries(0, 500)), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		settings, err := newAgentConfig(cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		recorded := &recordedAgent{accounts: settings.Accounts}
		r := &reloader{agent: recorded, log: slog.New(slog.DiscardHandler), accounts: settings.Accounts}
		r.Reloader = configreload.New(cfg, configreload.Options[*config.Config]{Name: "a", Apply: r.apply, Report: recorded.SetConfigStatus,
			WithoutNotifications: true, Metrics: metrics.New("test"), Log: r.log})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Watch(ctx) }()
		time.Sleep(10 * time.Second) // in the time of the bubble, as all below
		written, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		defer written.Close()
		pieces := []string{"kubernetes.accounts:\n"}
		for i := range 21 {
			pieces = append(pieces, entries(25*i, 25*(i+1)))
		}
		for _, piece := range pieces {
			time.Sleep(900 * time.Millisecond)
			synctest.Wait() // the watcher may have begun to look just now
			if recorded.sets > 0 || recorded.status.Error != "" {
				t.Fatalf("got %d accounts, error %q before the file was complete", len(recorded.accounts), recorded.status.Error)
			}
			if _, err := written.WriteString(piece); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if recorded.sets != 1 || len(recorded.accounts) != 525 {
			t.Errorf("got %d accounts after %d changes, want 525 after one", len(recorded.accounts), recorded.sets)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// notifiedAgent says what a reloader does to an agent.
type notifiedAgent struct{ events chan string }

func (a *notifiedAgent) SetAccounts(_ context.Context, accounts []agent.Account) {
	for _, account := range accounts {
		a.events <- string(account.Name)
	}
}

func (a *notifiedAgent) RereadCredentials() { a.events <- "reread" }

func (a *notifiedAgent) SetConfigStatus(configreload.Status) { a.events <- "status" }

// expect waits for an event. Others before it do not matter.
func (a *notifiedAgent) expect(t *testing.T, want string) {
	t.Helper()
	for {
		select {
		case got := <-a.events:
			if got == want {
				return
			}
		case <-time.After(time.Minute):
			t.Fatalf("timeout waiting for %s", want)
		}
	}
}
