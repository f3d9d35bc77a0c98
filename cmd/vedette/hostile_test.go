package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/textcheck"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/readtest"
)

// hostileText is what hostileAnswers puts into answers, as it is in JSON: a red colour, a bell, a line
// feed and a tab, a screen that is cleared by a single character, and a reversed end of the line.
const hostileText = `\u001b[31m\u0007\nError: forged\t` + "\u009b2J\x7f\u202egpj.\u2028\u200b"

// hostileAnswers replaces a word in all answers.
type hostileAnswers struct{ http.ResponseWriter }

func (h hostileAnswers) Write(b []byte) (int, error) {
	_, err := h.ResponseWriter.Write(bytes.ReplaceAll(b, []byte("evil"), []byte(hostileText)))
	return len(b), err
}

func (h hostileAnswers) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// TestNoHiddenCharacterReachesTheTerminal runs commands against a server whose names, messages and versions are hostile, and
// checks that no hidden character reaches the terminal, besides the line feeds between lines. YAML may have
// the marks of Unicode that change the direction: they have no escapes in plain YAML, as with kubectl.
func TestNoHiddenCharacterReachesTheTerminal(t *testing.T) {
	w := readtest.New(t)
	w.Account("evil-account", "pods", "deployments", "nodes", "namespaces")
	w.Put("evil-account", readtest.Node("evil-node"), readtest.Deployment("shop", "evil-web", 3), readtest.Pod("shop", "evil-pod", "web"),
		readtest.CrashingPod("evil-shop", "evil-broken"))
	w.Fleet.SetAgents(api.Agent{ID: "evil-agent", Version: "evil-version", Hostname: "evil-host", ZoneID: "evil-zone", Server: "evil-server",
		Config:   api.AgentConfig{Reason: "evil-reason", Message: "evil-message"},
		Accounts: []api.AgentAccount{{Name: "evil-account", Role: api.Refused, Message: "evil-refusal"}}})
	w.Fleet.Disconnect("evil-account")
	honest := api.New(api.Config{Store: w.Store, Hub: w.Hub, Fleet: w.Fleet, Dispatch: newFakeClusters(), Version: "evil-server"})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { honest.ServeHTTP(hostileAnswers{rw}, r) }))
	t.Cleanup(server.Close)
	for _, command := range []string{"accounts", "agents", "feeds", "ops", "version", "get pods -A", "get deployments,nodes -A", "get pods evil-none -n shop"} {
		for _, format := range []string{"", "wide", "name", "json", "yaml"} {
			args := append(strings.Fields(command), "--server", server.URL)
			if format != "" {
				args = append(args, "-o", format)
			}
			out, errOut := runHostile(t, args)
			expectVisible(t, strings.Join(args, " "), "output", out, format == "yaml")
			expectVisible(t, strings.Join(args, " "), "error output", errOut, false)
			if strings.HasPrefix(command, "a") && format != "name" && strings.Contains(errOut+out, "\nError: forged") {
				t.Errorf("%v: got a forged line in %q", args, errOut+out)
			}
		}
	}
}

// runHostile runs a command as main does, and returns its output and its error output.
func runHostile(t *testing.T, args []string) (out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&o)
	root.SetErr(output.SafeWriter{To: &e})
	if err := execute(t.Context(), root); err != nil {
		root.PrintErrln("Error:", err)
	}
	if o.Len()+e.Len() == 0 && args[0] != "ops" {
		t.Errorf("%q prints nothing", args)
	}
	return o.String(), e.String()
}

func expectVisible(t *testing.T, command, where, text string, mayHaveMarks bool) {
	t.Helper()
	for _, r := range text {
		if r == '\n' || !textcheck.IsHidden(r) || mayHaveMarks && !unicode.IsControl(r) {
			continue
		}
		t.Errorf("%s: got %U in the %s", command, r, where)
		return
	}
}

// TestErrorsAreSanitized checks that the command line writes its errors to a writer that sanitizes.
func TestErrorsAreSanitized(t *testing.T) {
	if _, ok := newRoot().ErrOrStderr().(output.SafeWriter); !ok {
		t.Error("errors are written as they are")
	}
	var b bytes.Buffer
	err := vedette.Errorf(vedette.Invalid, "a\x1b[2Jb\nc\td\u202ee\xff")
	if _, err := (output.SafeWriter{To: &b}).Write([]byte(err.Error())); err != nil || b.String() != "a?[2Jb\nc\td?e\uFFFD" {
		t.Errorf("got %q, %v", b.String(), err)
	}
}
