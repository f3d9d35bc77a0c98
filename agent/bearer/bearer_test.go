//go:build unix

package bearer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/internal/command"
)

func shell(script string) command.Command {
	return command.Command{Program: "sh", Args: []string{"-c", script}}
}

// TestOutputMustBeOneToken checks which outputs are tokens, and that errors do not quote them.
func TestOutputMustBeOneToken(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		raw    bool
		want   string
		err    string
	}{
		"json":                         {`echo '{"token": "abc.def", "expires": 5}'`, false, "abc.def", ""},
		"raw":                          {"echo abc", true, "abc", ""},
		"the wrong format":             {"echo secret", false, "", "7 bytes are not a JSON object with a text as its field token: set clouddriver.auth.tokenCommand.format to raw"},
		"json without the field":       {`echo '{"secret": "secret"}'`, false, "", "the token is empty"},
		"a number":                     {`echo '{"token": 5}'`, false, "", "not a JSON object"},
		"nothing":                      {":", true, "", "the token is empty"},
		"two lines":                    {`printf 'secret\nsecret'`, true, "", "characters that no token has"},
		"characters outside of ASCII":  {`printf 'sécret secret'`, true, "", "characters that no token has"},
		"a line break within json":     {`printf '{"token": "secret\\nsecret"}'`, false, "", "characters that no token has"},
		"endless":                      {"head -c 3000000 /dev/zero | tr '\\0' s", true, "", "longer than 16384 bytes"},
		"it fails":                     {"echo secret; echo log in first >&2; exit 1", true, "", "clouddriver.auth.tokenCommand: run sh: exit status 1: log in first"},
		"deeply nested json":           {"head -c 500000 /dev/zero | tr '\\0' '['", false, "", "not a JSON object"},
		"white space around the token": {`printf '\n abc \r\n'`, true, "abc", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			c := NewCommand(Config{Command: shell(tt.script), Raw: tt.raw}, slog.New(slog.NewTextHandler(&log, nil)))
			got, err := c.Token(t.Context())
			if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %q, %v, want %q, error %q", got, err, tt.want, tt.err)
			}
			if err != nil && strings.Contains(err.Error()+log.String(), "secret") {
				t.Errorf("got the output in an error or in the log: %v\n%s", err, log.String())
			}
		})
	}
}

// TestOldOrRejectedTokensAreReplaced checks when the program runs again.
func TestOldOrRejectedTokensAreReplaced(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, tt := range map[string]struct {
		command *Command
		want    bool
	}{
		"it never ran":                          {&Command{}, true},
		"a token that stays":                    {&Command{token: "a", obtained: ago(time.Hour), tried: ago(time.Hour)}, false},
		"a token that is young enough":          {&Command{cfg: Config{RefreshInterval: time.Minute}, token: "a", obtained: ago(59 * time.Second), tried: ago(59 * time.Second)}, false},
		"a token that is too old":               {&Command{cfg: Config{RefreshInterval: time.Minute}, token: "a", obtained: ago(time.Minute), tried: ago(time.Minute)}, true},
		"a rejected token":                      {&Command{token: "a", rejected: true, obtained: ago(minInterval), tried: ago(minInterval)}, true},
		"a rejected token that is a moment old": {&Command{token: "a", rejected: true, obtained: ago(time.Second), tried: ago(time.Second)}, false},
		"an old token that cannot be replaced":  {&Command{cfg: Config{RefreshInterval: time.Minute}, token: "a", obtained: ago(time.Hour), tried: ago(time.Second)}, false},
		"a failure a moment ago":                {&Command{tried: ago(time.Second), err: errors.New("no")}, false},
		"a failure a while ago":                 {&Command{tried: ago(minInterval), err: errors.New("no")}, true},
	} {
		if got := tt.command.needsRun(now); got != tt.want {
			t.Errorf("%s: got %t, want %t", name, got, tt.want)
		}
	}
}

// TestTheOldTokenIsKept checks that a program that fails later does not end the connection, that the
// error of a program that never printed a token is returned until it may run again, and that a new
// token replaces a rejected one.
func TestTheOldTokenIsKept(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	c := NewCommand(Config{Command: command.Command{Program: "cat", Args: []string{file}}, Raw: true}, slog.New(slog.DiscardHandler))
	expect := func(want string) {
		t.Helper()
		if got, err := c.Token(t.Context()); got != want || (want == "") != (err != nil) {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	later := func() { c.tried = c.tried.Add(-minInterval) }
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect("")
	write("a")
	expect("")
	later()
	expect("a")
	write("b")
	later()
	expect("a")
	c.Rejected()
	expect("b")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	c.Rejected()
	later()
	expect("b")
}

// TestWaitingEndsWithTheContext checks that a program that hangs does not hold up a stream whose
// context has ended.
func TestWaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCommand(Config{}, slog.New(slog.DiscardHandler))
		c.lock <- struct{}{} // as while the program runs
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Token(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

// FuzzParse checks that no output of a program leads to a token that cannot be sent.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"token":"a"}`), false)
	f.Add([]byte("a\n"), true)
	f.Add([]byte("{\"token\":\"a\\u0000\"}"), false)
	f.Fuzz(func(t *testing.T, printed []byte, raw bool) {
		token, err := parse(printed, raw)
		if err == nil && (token == "" || len(token) > maxTokenBytes || strings.ContainsAny(token, " \t\r\n\x00\x7f")) {
			t.Errorf("got token %q of %q, want an error", token, printed)
		}
	})
}
