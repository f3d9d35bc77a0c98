//go:build linux

package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/cli/kubectldoc"
	"github.com/vedette-io/vedette/internal/cli/kubectlmap"
	"github.com/vedette-io/vedette/internal/golden"
	"github.com/vedette-io/vedette/test/controlplane"
)

const (
	kubectlTree = "../../internal/cli/kubectldoc/testdata/kubectl.json"
	kubectlPage = "../../docs/kubectl.md"
)

// TestKubectlTreeIsTheRecordedOne checks that the recorded commands and flags are those of the kubectl that tests use.
func TestKubectlTreeIsTheRecordedOne(t *testing.T) {
	binaries, err := controlplane.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := kubectldoc.Read(t.Context(), binaries["kubectl"])
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Commands) < 50 || len(tree.Global) < 20 {
		t.Fatalf("got %d commands and %d global flags, want more", len(tree.Commands), len(tree.Global))
	}
	text, err := json.MarshalIndent(tree, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, kubectlTree, string(text)+"\n")
}

// TestKubectlDocument checks that the documentation is what follows from both trees, and that it explains each flag.
func TestKubectlDocument(t *testing.T) {
	var tree kubectldoc.Tree
	text, err := os.ReadFile(kubectlTree)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	root := newRoot()
	root.InitDefaultCompletionCmd()
	document := kubectldoc.Compare(root, tree)
	for _, problem := range document.Problems {
		t.Error(problem)
	}
	golden.Compare(t, kubectlPage, document.Text)
}

// TestSuggestedCommandsCanBeUsed checks that the commands which are suggested instead of kubectl's can be used: their names, flags and
// number of arguments are right.
func TestSuggestedCommandsCanBeUsed(t *testing.T) {
	suggestion := regexp.MustCompile("`vedette ([^`|>]*)")
	quoted := regexp.MustCompile(`'[^']*'`)
	checked := 0
	for _, c := range kubectlmap.Commands() {
		for _, found := range suggestion.FindAllStringSubmatch(c.Instead, -1) {
			checked++
			args := strings.Fields(quoted.ReplaceAllString(found[1], "VALUE"))
			root := newRoot()
			cmd, rest, err := root.Find(args)
			if cmd == root && found[1] == "--help" {
				continue
			}
			if err != nil || cmd == root || cmd.Hidden {
				t.Errorf("%s: there is no command %q: %v", c.Path, found[0], err)
				continue
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%s: %s: %v", c.Path, found[0], err)
				continue
			}
			words := cmd.Flags().Args()
			if err := cmd.ValidateArgs(words); err != nil {
				t.Errorf("%s: %s: %v", c.Path, found[0], err)
			}
			if isObjects := strings.Contains(cmd.Use, "TYPE") || strings.Contains(cmd.Use, "KIND"); isObjects && len(words) == 0 && strings.Contains(found[0], " -") &&
				!cmd.Flags().Changed("filename") && !cmd.Flags().Changed("list") {
				t.Errorf("%s: %s names no object", c.Path, found[0])
			}
		}
	}
	if checked < 20 {
		t.Errorf("checked %d commands, want more", checked)
	}
}
