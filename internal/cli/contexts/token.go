package contexts

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

// tokenSource returns what supplies the bearer token; nil if there is none.
func (c Context) tokenSource() (client.TokenSource, error) {
	switch {
	case c.TokenFile != "" && len(c.TokenCommand) > 0:
		return nil, vedette.Errorf(vedette.Invalid, "a token comes from a file or from a command: remove one of them")
	case c.TokenFile != "":
		return tokenFile(c.TokenFile).token, nil
	case len(c.TokenCommand) > 0:
		return (&tokenCommand{args: c.TokenCommand}).token, nil
	}
	return nil, nil
}

// tokenFile is the path of a file with a token. It is read for each request, because tokens
// expire and are replaced.
type tokenFile string

func (f tokenFile) token(context.Context) (string, error) {
	text, err := os.ReadFile(string(f))
	if err != nil {
		return "", vedette.Errorf(vedette.Invalid, "read the token: %w", err)
	}
	return cleanToken(string(text), "the file "+string(f))
}

// tokenCommand runs a program that prints a token.
type tokenCommand struct {
	args []string

	mu   sync.Mutex // held while the program runs, so that it runs once for many requests
	last string
	ran  time.Time
}

const (
	// tokenMaxAge is for how long a token is used again.
	tokenMaxAge = time.Minute
	// tokenCommandTimeout limits a program, which may ask a service for the token.
	tokenCommandTimeout = 30 * time.Second
)

// token never includes the program's output in errors, because that may be a token.
func (c *tokenCommand) token(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != "" && time.Since(c.ran) < tokenMaxAge {
		return c.last, nil
	}
	ctx, cancel := context.WithTimeout(ctx, tokenCommandTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	command.Stderr, command.WaitDelay = os.Stderr, time.Second
	var out bytes.Buffer
	command.Stdout = &limitedBuffer{buffer: &out, left: maxTokenBytes + 2}
	if err := command.Run(); err != nil {
		return "", vedette.Errorf(vedette.Invalid, "get a token from %s: %w", c.args[0], err)
	}
	token, err := cleanToken(out.String(), "the command "+c.args[0])
	if err == nil {
		c.last, c.ran = token, time.Now()
	}
	return token, err
}

// maxTokenBytes is what servers accept in headers.
const maxTokenBytes = 16 << 10

// cleanToken removes white space around a token, and rejects what cannot be one.
func cleanToken(text, source string) (string, error) {
	token := strings.TrimSpace(text)
	isOther := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	switch {
	case token == "":
		return "", vedette.Errorf(vedette.Invalid, "%s has no token", source)
	case len(token) > maxTokenBytes:
		return "", vedette.Errorf(vedette.Invalid, "the token in %s is longer than %d bytes", source, maxTokenBytes)
	case strings.ContainsFunc(token, isOther):
		return "", vedette.Errorf(vedette.Invalid, "%s has characters that no token has: it must contain the token only", source)
	}
	return token, nil
}

// limitedBuffer drops what exceeds a limit.
type limitedBuffer struct {
	buffer *bytes.Buffer
	left   int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	kept := p[:min(len(p), b.left)]
	b.left -= len(kept)
	b.buffer.Write(kept)
	return len(p), nil
}
