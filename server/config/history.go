package config

import (
	"time"

	"github.com/vedette-io/vedette/internal/configfile"
)

// History configures the history of operations.
type History struct {
	// Time for which ended operations can be read, at least 1h. An operation that is sent again with its id within
	// this time is not executed again.
	Keep configfile.Duration `config:"keep" default:"14d"`
}

// Retention returns Keep.
func (h History) Retention() time.Duration { return time.Duration(h.Keep) }

func (c *Config) checkHistory(h History) {
	if h.Retention() < time.Hour {
		c.addProblem("history.keep", "%q must be 1h or more, got %s", "history.keep", h.Retention())
	}
}
