//go:build unix

package command_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/command"
)

func shell(script string) command.Command {
	return command.Command{Program: "sh", Args: []string{"-c", script}, Env: []string{"NAME=value"}}
}

// TestProgramOutputIsBounded checks what is returned of a program's output.
func TestProgramOutputIsBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		command command.Command
		want    string
		err     string // empty for none
	}{
		"output":                        {shell("echo $NAME; echo else >&2"), "value\n", ""},
		"an argument with spaces":       {command.Command{Program: "printf", Args: []string{"%s", "a  b; c"}}, "a  b; c", ""},
		"no output":                     {shell(":"), "", ""},
		"it leaves a process behind":    {shell("sleep 5 & echo a"), "a\n", ""},
		"no such program":               {command.Command{Program: "/no/such/program"}, "", "run /no/such/program: "},
		"it fails":                      {shell("echo secret; exit 3"), "", "run sh: exit status 3"},
		"it fails and says why":         {shell("echo secret; echo no session >&2; exit 3"), "", "exit status 3: no session"},
		"what it says is not text":      {shell(`printf 'a\377b' >&2; exit 1`), "", "exit status 1: a?b"},
		"it says too much about it":     {shell("head -c 100000 /dev/zero | tr '\\0' e >&2; exit 1"), "", "exit status 1: " + strings.Repeat("e", 1<<10)},
		"more output than anyone needs": {shell("head -c 3000000 /dev/zero | tr '\\0' x"), strings.Repeat("x", 1<<20), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.command.Output(t.Context())
			if string(got) != tt.want {
				t.Errorf("got %d bytes %.40q, want %d bytes %.40q", len(got), got, len(tt.want), tt.want)
			}
			if (err == nil) != (tt.err == "") || err != nil && (!strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "secret") || len(err.Error()) > 2000) {
				t.Errorf("got error %.2000v, want %.2000q", err, tt.err)
			}
		})
	}
}

// TestErrorsHideSecrets checks that an error does not repeat credentials that a program prints to
// standard error.
func TestErrorsHideSecrets(t *testing.T) {
	t.Setenv("CLOUD_SECRET_ACCESS_KEY", "inherited-hunter2")
	for name, tt := range map[string]struct{ script, want string }{
		"its output":                   {`echo token-hunter2; echo "cannot store token-hunter2" >&2`, "cannot store ***"},
		"its output, quoted":           {`printf 'a\tb-hunter2'; echo 'got "a\tb-hunter2"' >&2`, `got "***"`},
		"the kubeconfig's variable":    {`echo "no login with $DB_PASSWORD as $DB_USER" >&2`, "no login with *** as somebody"},
		"the agent's variable":         {`echo "no login with $CLOUD_SECRET_ACCESS_KEY" >&2`, "no login with ***"},
		"an argument that is secret":   {`echo "bad argument $1" >&2`, "bad argument ***"},
		"the path of a file":           {`echo "cannot read $WEB_TOKEN_FILE" >&2`, "cannot read /tokens/hunter-file"},
		"a secret that was cut":        {`head -c 1016 /dev/zero | tr '\0' e >&2; echo "$DB_PASSWORD" >&2`, "eeee***"},
		"a dump of the environment":    {`env | grep ^DB_PASS >&2`, "DB_PASSWORD=***"},
		"a secret in another encoding": {`printf %s "$DB_PASSWORD" | od -An -tx1 -v | tr -d ' \n' >&2`, "***"},
	} {
		t.Run(name, func(t *testing.T) {
			c := command.Command{Program: "sh", Args: []string{"-c", tt.script + "; exit 1", "sh", "arg-hunter2"},
				Env: []string{"DB_PASSWORD=variable-hunter2", "DB_USER=somebody", "WEB_TOKEN_FILE=/tokens/hunter-file"}, Secrets: []string{"arg-hunter2"}}
			_, err := c.Output(t.Context())
			if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "68756e746572") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %.2000v, want %s", err, tt.want)
			}
			if strings.Contains(err.Error(), "eevariable") || strings.Contains(err.Error(), "eevari") {
				t.Errorf("the error ends with the beginning of a secret: %v", err)
			}
		})
	}
}

// TestTheEndOfTheContextKillsTheGroup checks that a program and its child processes are killed with
// the context.
func TestTheEndOfTheContextKillsTheGroup(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := shell("exec 3< " + fifo + "; sleep 3600 & wait").Output(ctx)
		done <- err
	}()
	pipe, err := os.OpenFile(fifo, os.O_WRONLY, 0) // waits until the program opens it
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
	for deadline := time.Now().Add(time.Minute); err == nil && time.Now().Before(deadline); {
		_, err = io.WriteString(pipe, "x") // until no process has the other end open
	}
	if !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got error %v, want %v: a process of the program is still running", err, syscall.EPIPE)
	}
}
