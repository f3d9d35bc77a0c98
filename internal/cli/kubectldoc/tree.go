// Package kubectldoc compares the commands and flags of vedette with those of kubectl: docs/kubectl.md is generated from both,
// and a flag of kubectl that vedette lacks answers what to use instead. Package kubectlmap does the same for whole commands.
//
// kubectl's tree is recorded with its version from the kubectl that tests use. A test fails if a flag of kubectl is neither
// here nor explained, or if an explanation has no flag.
package kubectldoc

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// Tree has the commands of one version of kubectl.
type Tree struct {
	Version  string    `json:"version"`
	Global   []Flag    `json:"global"` // flags of all commands
	Commands []Command `json:"commands"`
}

// Command is a command of kubectl with its own flags.
type Command struct {
	Path  string `json:"path"` // without "kubectl"
	Flags []Flag `json:"flags,omitempty"`
}

// Flag is a flag of kubectl.
type Flag struct {
	Name  string `json:"name"`
	Short string `json:"short,omitempty"`
}

// Read asks a kubectl for its commands and flags.
func Read(ctx context.Context, kubectl string) (Tree, error) {
	help := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, kubectl, args...).Output()
		if err != nil {
			return "", fmt.Errorf("run kubectl %s: %w", strings.Join(args, " "), err)
		}
		return string(out), nil
	}
	version, err := help("version", "--client")
	if err != nil {
		return Tree{}, err
	}
	first, _, _ := strings.Cut(version, "\n")
	t := Tree{Version: strings.TrimPrefix(first, "Client Version: ")}
	options, err := help("options")
	if err != nil {
		return t, err
	}
	t.Global = flagsIn(options)
	top, err := help("--help")
	if err != nil {
		return t, err
	}
	pending := commandsIn(top, "")
	for len(pending) > 0 {
		path := pending[0]
		text, err := help(append(strings.Fields(path), "--help")...)
		if err != nil {
			return t, err
		}
		t.Commands = append(t.Commands, Command{Path: path, Flags: flagsIn(text)})
		pending = append(pending[1:], commandsIn(text, path+" ")...)
	}
	slices.SortFunc(t.Commands, func(a, b Command) int { return strings.Compare(a.Path, b.Path) })
	return t, nil
}

var (
	commandLine = regexp.MustCompile(`^  ([a-z][a-z-]*) {2,}\S`)
	flagLine    = regexp.MustCompile(`^    (?:-(\w), )?--([\w-]+)=.*:$`)
)

// commandsIn returns the commands that a help text lists below headings that end in "Commands:".
func commandsIn(help, prefix string) (paths []string) {
	listed := false
	for line := range strings.Lines(help) {
		line = strings.TrimRight(line, "\n")
		switch found := commandLine.FindStringSubmatch(line); {
		case line != "" && !strings.HasPrefix(line, " "):
			heading, _, _ := strings.Cut(line, " (")
			listed = strings.HasSuffix(strings.TrimSuffix(heading, ":"), "Commands")
		case listed && found != nil:
			paths = append(paths, prefix+found[1])
		}
	}
	return paths
}

func flagsIn(help string) (flags []Flag) {
	for line := range strings.Lines(help) {
		if found := flagLine.FindStringSubmatch(strings.TrimRight(line, "\n")); found != nil {
			flags = append(flags, Flag{Name: found[2], Short: found[1]})
		}
	}
	return flags
}
