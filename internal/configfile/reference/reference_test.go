package reference

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
)

// Sample configures the test.
type Sample struct {
	// A key that works.
	Works string `config:"works" default:"x"`
	// Nothing needs it.
	Later int `config:"later,ignored,warn"`
	// The whole group is gone.
	Gone Nothing `config:"gone,ignored"`
	Port Port    `config:"port"`
}

// Port configures the port.
type Port struct {
	TLS Security `config:"tls"`
}

// Security secures the port.
type Security struct {
	// Use TLS.
	Enabled bool `config:"enabled" default:"false"`
}

// Nothing is a group that is gone.
type Nothing struct {
	// Never in the table.
	Key string `config:"key,warn"`
}

func TestEachKeyIsInOneTable(t *testing.T) {
	page, err := Markdown(Page{Title: "Sample", Program: "program", Root: "../../.."}, Sample{})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct{ heading, next, row string }{
		{"# Sample", "## `port`", "| `works` | string | `x` | A key that works. |"},
		{"## `port`", "## Accepted and ignored", "| `port.tls` | group |  | Security secures the port. |\n| `port.tls.enabled` | boolean | `false` | Use TLS. |"},
		{"## Accepted and ignored", "", "| `later` ⚠ | Nothing needs it. |"},
		{"## Accepted and ignored", "", "| `gone.*` ⚠ | The whole group is gone. |"},
	} {
		_, text, _ := strings.Cut(page, part.heading)
		if part.next != "" {
			text, _, _ = strings.Cut(text, part.next)
		}
		if !strings.Contains(text, part.row+"\n") || strings.Count(page, part.row) != 1 {
			t.Errorf("got %s\nwant %s below %s, and nowhere else", page, part.row, part.heading)
		}
	}
	if strings.Contains(page, "gone.key") {
		t.Errorf("got a row for a key of an ignored group:\n%s", page)
	}
}

func TestKeysNeedComments(t *testing.T) {
	type Bare struct {
		Key string `config:"key"`
	}
	_, err := Markdown(Page{Root: "../../.."}, Bare{})
	if err == nil || !strings.Contains(err.Error(), "Bare.Key has no comment") {
		t.Errorf("got %v, want an error that names the field", err)
	}
	if keys := configfile.Keys(Bare{}); len(keys) != 1 {
		t.Errorf("got %d keys, want 1", len(keys))
	}
}
