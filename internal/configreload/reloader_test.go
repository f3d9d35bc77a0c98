package configreload

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/logging"
)

// numbered is a configuration whose only setting is a secret that ends with its number.
type numbered struct {
	secrets
	number string
}

func (n *numbered) secret() string                   { return "open-sesame-" + n.number }
func (n *numbered) Files() []configfile.File         { return nil }
func (n *numbered) ReadFiles() []string              { return nil }
func (n *numbered) Adopt() error                     { return nil }
func (n *numbered) Close() error                     { return nil }
func (n *numbered) LogLevel() string                 { return "info" }
func (n *numbered) SecretValues() []string           { return []string{n.secret()} }
func (n *numbered) NeedRestart(*numbered) []string   { return nil }
func (n *numbered) Effective() []configfile.KeyValue { return nil }
func (n *numbered) Reloadable() Reloadable           { return nil }
func (n *numbered) Next() (*numbered, []configfile.File, error) {
	return &numbered{number: n.number + "1"}, nil, nil
}

// noMetrics measures nothing.
type noMetrics struct{}

func (noMetrics) ConfigInEffect(time.Time) {}
func (noMetrics) ConfigApplied()           {}
func (noMetrics) ConfigRejected()          {}

// TestSecretsAreMaskedDuringReload checks that neither the new secrets nor those before get into lines that
// are logged while a configuration is put into effect, and right afterwards.
func TestSecretsAreMaskedDuringReload(t *testing.T) {
	var lines bytes.Buffer
	log, err := logging.New(logging.Config{Level: "info"}, &lines, &lines)
	if err != nil {
		t.Fatal(err)
	}
	started := &numbered{number: "1"}
	logBoth := func(before, next *numbered) {
		log.Info("a server quotes", "old", before.secret(), "new", next.secret())
	}
	var before, now *numbered
	r := New(started, Options[*numbered]{Name: "a", Metrics: noMetrics{}, Log: log,
		Apply: func(_ context.Context, b, n *numbered) []string {
			before, now = b, n
			logBoth(b, n)
			return []string{"token"}
		}})
	for range 2 {
		r.Reload(t.Context(), nil)
		logBoth(before, now)
	}
	if got := lines.String(); strings.Contains(got, "open-sesame") || strings.Count(got, "old=***") != 4 {
		t.Errorf("got lines %s, want four with masked secrets", got)
	}
}
