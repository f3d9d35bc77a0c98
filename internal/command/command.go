// Package command runs the programs that print credentials: exec plugins of kubeconfigs, and
// clouddriver.auth.tokenCommand. Such a program may hang, print without end, or leave processes
// behind. None of that may harm the agent:
//
//   - it runs until its context ends, and is then killed with all processes that it started;
//   - what exceeds the limit of its output is dropped;
//   - errors contain what it printed to standard error, without its output and without what it was
//     given to log in with, because errors are shown to users.
//
// docs/decisions/0101 says how credentials are chosen and replaced.
package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette/internal/mask"
)

const (
	maxOutputBytes = 1 << 20 // bytes of standard output that are kept
	maxStderrBytes = 1 << 10 // bytes of standard error that are reported
	// outputDelay is how long child processes may keep the output open after the program has ended.
	outputDelay = 2 * time.Second
)

// Command is a program with its arguments.
type Command struct {
	Program string
	Args    []string
	Env     []string // in addition to this process's environment, as NAME=VALUE
	Secrets []string // what errors must not contain either
}

// Output runs the program until it ends or ctx does, and returns what it printed.
func (c Command) Output(ctx context.Context) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.Program, c.Args...) //nolint:gosec // the operator names the program
	cmd.Env = append(os.Environ(), c.Env...)
	stdout, stderr := &prefixBuffer{limit: maxOutputBytes}, &prefixBuffer{limit: maxStderrBytes}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = outputDelay
	killGroup(cmd)
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // the program itself succeeded and had printed everything
		err = nil
	}
	message := ""
	if err != nil {
		message = c.message(stdout.Bytes(), stderr)
	}
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s did not end in time and was killed: %w", c.Program, ctx.Err())
	case err != nil && message != "":
		return nil, fmt.Errorf("run %s: %w: %s", c.Program, err, message)
	case err != nil:
		return nil, fmt.Errorf("run %s: %w", c.Program, err)
	}
	return stdout.Bytes(), nil
}

// message returns what the program printed to standard error, without secrets.
func (c Command) message(stdout []byte, stderr *prefixBuffer) string {
	secrets := append([]string{string(stdout)}, c.Secrets...)
	for _, variable := range append(os.Environ(), c.Env...) {
		if name, value, _ := strings.Cut(variable, "="); isSecretVariable(name, value) {
			secrets = append(secrets, value)
		}
	}
	printed := mask.Text{Value: strings.ToValidUTF8(strings.TrimSpace(stderr.String()), "?"), Truncated: stderr.Len() == stderr.limit}
	return mask.TextValues(secrets).MaskAll([]mask.Text{printed})[0]
}

// secretNames are parts of the names of variables with credentials.
var secretNames = [...]string{"SECRET", "TOKEN", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "_KEY", "APIKEY"}

// isSecretVariable reports whether an environment variable may have a credential, and not just the path
// of a file with one.
func isSecretVariable(name, value string) bool {
	name = strings.ToUpper(name)
	return !strings.HasPrefix(value, "/") &&
		slices.ContainsFunc(secretNames[:], func(part string) bool { return strings.Contains(name, part) })
}

// prefixBuffer keeps the first limit bytes that are written to it.
type prefixBuffer struct {
	bytes.Buffer
	limit int
}

// Write accepts all of b and keeps what fits.
func (h *prefixBuffer) Write(b []byte) (int, error) {
	_, _ = h.Buffer.Write(b[:max(0, min(len(b), h.limit-h.Len()))]) // bytes.Buffer does not fail
	return len(b), nil
}

// ReadFrom hides bytes.Buffer.ReadFrom, with which io.Copy would bypass Write.
func (h *prefixBuffer) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{h}, r)
}
