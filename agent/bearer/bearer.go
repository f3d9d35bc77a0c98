// Package bearer supplies the token that the agent sends to a proxy in front of the server, for
// example Google's Identity-Aware Proxy. The server itself does not check it.
package bearer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/command"
)

const (
	// commandTimeout bounds a run of the program, which may ask a service for the token.
	commandTimeout = 30 * time.Second
	// minInterval is the time between two runs at least, so that neither a program that fails nor
	// a proxy that rejects every token makes the agent run it with each attempt to connect.
	minInterval = 10 * time.Second
	// maxTokenBytes is what proxies accept in headers.
	maxTokenBytes = 16 << 10
)

// Config names a program that prints a token.
type Config struct {
	Command command.Command
	// Raw means that the program prints the token itself. Otherwise it prints a JSON object with a
	// field token.
	Raw bool
	// RefreshInterval is the age at which a token is replaced. Zero means only after it was
	// rejected.
	RefreshInterval time.Duration
}

// Command supplies the token that a program prints. The program runs when a token is needed,
// and never in the background, so an agent that stays connected costs nothing. It is safe for
// concurrent use.
type Command struct {
	cfg Config
	log *slog.Logger

	// lock guards the fields below. It is held while the program runs, so that the program runs
	// once for many streams. It is a channel because waiting must end with the context.
	lock     chan struct{}
	token    string // the last one; empty before the first
	obtained time.Time
	tried    time.Time // when the program ended last
	err      error     // of that run
	rejected bool      // token is not accepted
}

// NewCommand returns a Command. It does not run the program yet.
func NewCommand(cfg Config, log *slog.Logger) *Command {
	return &Command{cfg: cfg, log: log, lock: make(chan struct{}, 1)}
}

// Token returns the current token, and runs the program if there is none, or if it is too old or
// was rejected. If the program fails, the old token is used as long as possible.
func (c *Command) Token(ctx context.Context) (string, error) {
	select {
	case c.lock <- struct{}{}:
		defer func() { <-c.lock }()
	case <-ctx.Done():
		return "", fmt.Errorf("wait for the token: %w", context.Cause(ctx))
	}
	if c.needsRun(time.Now()) {
		c.run(ctx)
	}
	if c.token != "" {
		return c.token, nil
	}
	return "", c.err
}

func (c *Command) needsRun(now time.Time) bool {
	switch {
	case !c.tried.IsZero() && now.Sub(c.tried) < minInterval:
		return false
	case c.token == "" || c.rejected:
		return true
	}
	return c.cfg.RefreshInterval > 0 && now.Sub(c.obtained) >= c.cfg.RefreshInterval
}

func (c *Command) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	token, err := c.ask(ctx)
	c.tried, c.err = time.Now(), err
	if err != nil {
		c.log.Warn("clouddriver.auth.tokenCommand gave no token", "error", err, "keptOldToken", c.token != "")
		return
	}
	c.token = token
	c.obtained = c.tried
	c.rejected = false
}

// ask runs the program. Errors never contain what it printed, because that may be a token.
func (c *Command) ask(ctx context.Context) (string, error) {
	program := c.cfg.Command.Program
	printed, err := c.cfg.Command.Output(ctx)
	if err != nil {
		return "", vedette.Errorf(vedette.Denied, "get a token by clouddriver.auth.tokenCommand: %w", err)
	}
	token, err := parse(printed, c.cfg.Raw)
	if err != nil {
		return "", vedette.Errorf(vedette.Invalid, "read the output of %s (clouddriver.auth.tokenCommand): %w", program, err)
	}
	return token, nil
}

// Rejected notes that a proxy did not accept the last token. The next call of Token gets another.
func (c *Command) Rejected() {
	c.lock <- struct{}{}
	defer func() { <-c.lock }()
	c.rejected = true
}

// parse returns the token in the output of a program.
func parse(printed []byte, raw bool) (string, error) {
	text := string(printed)
	if !raw {
		var answer struct{ Token string }
		if err := json.Unmarshal(printed, &answer); err != nil {
			return "", fmt.Errorf("%d bytes are not a JSON object with a text as its field token: "+
				"set clouddriver.auth.tokenCommand.format to raw if the program prints the token itself", len(printed))
		}
		text = answer.Token
	}
	token := strings.TrimSpace(text)
	return token, Check(token)
}

// Check returns an error if text cannot be a token. The error does not quote it.
func Check(text string) error {
	switch {
	case text == "":
		return errors.New("the token is empty")
	case len(text) > maxTokenBytes:
		return fmt.Errorf("the token is longer than %d bytes", maxTokenBytes)
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return errors.New("the token has spaces or other characters that no token has")
	}
	return nil
}
