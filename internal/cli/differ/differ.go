// Package differ shows how objects differ, by the program diff or the one in KUBECTL_EXTERNAL_DIFF, as
// kubectl does.
package differ

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

// variable is the environment variable that names another program than diff.
const variable = "KUBECTL_EXTERNAL_DIFF"

// Differ writes objects into two directories, which a program compares. The program writes to Out and ErrOut.
type Differ struct {
	Out, ErrOut io.Writer
	dir         string
	from, to    string // names of the directories
}

// New returns a Differ whose directories have these names, which the output shows. The caller must close it.
func New(out, errOut io.Writer, from, to string) (*Differ, error) {
	dir, err := os.MkdirTemp("", "vedette-diff-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the objects to compare: %w", err)
	}
	d := &Differ{Out: out, ErrOut: errOut, dir: dir, from: fileName(from), to: fileName(to)}
	if d.from == d.to {
		d.to += "-2"
	}
	for _, name := range []string{d.from, d.to} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			d.Close()
			return nil, fmt.Errorf("make a directory for the objects to compare: %w", err)
		}
	}
	return d, nil
}

// Close removes the directories.
func (d *Differ) Close() { _ = os.RemoveAll(d.dir) }

// Add adds an object under a name. An empty text means that the object does not exist.
func (d *Differ) Add(name, from, to string) error {
	for dir, text := range map[string]string{d.from: from, d.to: to} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(d.dir, dir, fileName(name)), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write an object to compare: %w", err)
		}
	}
	return nil
}

// Run compares the directories, and reports whether they differ.
func (d *Differ) Run(ctx context.Context) (differ bool, err error) {
	program, args := command(os.Getenv(variable))
	cmd := exec.CommandContext(ctx, program, append(args, d.from, d.to)...)
	cmd.Dir = d.dir
	cmd.Stdout = d.Out
	cmd.Stderr = d.ErrOut
	cmd.WaitDelay = time.Second // a process that the program has started may keep the output open
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() != nil: // the program was ended
		return false, context.Cause(ctx)
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		return true, nil
	case errors.Is(err, exec.ErrNotFound):
		return false, vedette.Errorf(vedette.NotFound, "the program %s was not found: install it, or name another one in %s", program, variable)
	}
	return false, fmt.Errorf("compare by %s: %w", program, err)
}

// argumentPattern matches arguments that kubectl accepts in the variable.
var argumentPattern = regexp.MustCompile(`^[a-zA-Z0-9-=]+$`)

func command(external string) (program string, args []string) {
	words := strings.Fields(external)
	if len(words) == 0 {
		return "diff", []string{"-u", "-N"}
	}
	for _, word := range words[1:] {
		if argumentPattern.MatchString(word) {
			args = append(args, word)
		}
	}
	return words[0], args
}

// maxFileName is the longest name of a file in bytes, with room for what a program appends.
const maxFileName = 200

// fileName returns a name as the name of a file. It cannot be that of another directory. Long names that differ stay different.
func fileName(name string) string {
	safe := strings.Map(func(r rune) rune {
		if r == '/' || r == os.PathSeparator || r < ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	if len(safe) > maxFileName {
		safe = fmt.Sprintf("%s-%.6x", strings.ToValidUTF8(safe[:maxFileName], ""), sha256.Sum256([]byte(name)))
	}
	if safe == "" || safe == "." || safe == ".." || strings.HasPrefix(safe, "-") {
		safe = "_" + safe
	}
	return safe
}
