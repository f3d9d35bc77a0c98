package upgrade

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/test/programs"
)

// TestCommandsAndFlagsStay compares the commands and flags of the programs of both versions.
func TestCommandsAndFlagsStay(t *testing.T) {
	before, err := previous(t).Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now := t.TempDir()
	if err := programs.Build(t.Context(), now, "vedette", "vedette-agent", "vedette-server"); err != nil {
		t.Fatal(err)
	}
	had := commandLine(t, filepath.Join(before, "vedette"))
	if len(had) < 200 {
		t.Fatalf("got %d commands and flags of vedette, want all", len(had))
	}
	for _, name := range missing(had, commandLine(t, filepath.Join(now, "vedette"))) {
		t.Errorf("%s is gone: scripts of users need it", name)
	}
	for _, program := range []string{"vedette-agent", "vedette-server"} {
		had := flagsOf(t, filepath.Join(before, program))
		if len(had) < 2 {
			t.Fatalf("got %q of %s, want its flags", had, program)
		}
		for _, name := range missing(had, flagsOf(t, filepath.Join(now, program))) {
			t.Errorf("%s %s is gone", program, name)
		}
	}
}

// commandLine returns all commands and flags of the command-line tool, as its completion offers them.
func commandLine(t *testing.T, program string, words ...string) (all []string) {
	t.Helper()
	for _, flag := range complete(t, program, append(words, "--")) {
		all = append(all, strings.Join(append(words, flag), " "))
	}
	if len(words) > 2 {
		return all
	}
	for _, command := range complete(t, program, append(words, "")) {
		if !commandName.MatchString(command) || len(words) > 0 && !isCommand(t, program, append(words, command)) {
			continue
		}
		all = append(all, strings.Join(append(words, command), " "))
		all = append(all, commandLine(t, program, append(append([]string{}, words...), command)...)...)
	}
	return all
}

var commandName = regexp.MustCompile(`^[a-z][a-z-]*$`)

// isCommand reports whether words are a command, and not an argument of one: a command's usage names all of them.
func isCommand(t *testing.T, program string, words []string) bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, append(words, "--help")...).Output()
	return err == nil && strings.Contains(string(out), "vedette "+strings.Join(words, " ")+" ")
}

// complete asks cobra's completion.
func complete(t *testing.T, program string, words []string) (names []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, append([]string{"__completeNoDesc"}, words...)...)
	cmd.Env = append(cmd.Environ(), "HOME="+t.TempDir(), "VEDETTE_SERVER=http://127.0.0.1:1", "KUBECONFIG=/dev/null")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("complete %q: %v", words, err)
	}
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, ":") {
			names = append(names, strings.TrimSuffix(line, "="))
		}
	}
	return names
}

var flagName = regexp.MustCompile(`(?m)^ +(--?[a-z][a-z-]*)`)

// flagsOf returns the flags and commands in the usage of an agent or a server.
func flagsOf(t *testing.T, program string) (names []string) {
	t.Helper()
	out, _ := exec.CommandContext(t.Context(), program, "--help").CombinedOutput() // the status of help differs
	for _, found := range flagName.FindAllStringSubmatch(string(out), -1) {
		names = append(names, found[1])
	}
	return names
}
