package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestManPages checks that each command that help shows has a page with its texts and all of its flags, and that no line of a text is
// taken for a macro.
func TestManPages(t *testing.T) {
	directory := t.TempDir()
	if _, _, err := runCLI(t.Context(), "man", directory, "--date", "2026-11-27"); err != nil {
		t.Fatal(err)
	}
	count := 0
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		if cmd.Name() == "help" || cmd.HasParent() && !cmd.IsAvailableCommand() {
			return
		}
		count++
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		content, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			t.Error(err)
			return
		}
		page := strings.ReplaceAll(string(content), `\-`, "-")
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(page, "--"+f.Name+`"`) {
				t.Errorf("%s does not describe --%s", name, f.Name)
			}
		})
		for _, want := range []string{cmd.Short, "2026-11-27", ".SH NAME\n"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s does not contain %q:\n%s", name, want, page)
			}
		}
		for line := range strings.Lines(page) {
			if macro := strings.Fields(line + " ")[:min(1, len(strings.Fields(line)))]; len(macro) > 0 && strings.HasPrefix(line, ".") &&
				!strings.Contains(" .TH .SH .nf .fi .TP .B .BI .BR ", " "+macro[0]+" ") {
				t.Errorf("%s: the line %q is an unknown macro", name, line)
			}
		}
		for _, below := range cmd.Commands() {
			check(below)
		}
	}
	check(newRoot())
	if count < 40 {
		t.Errorf("there are %d commands", count)
	}
	for _, date := range []string{"", "27.11.2026"} {
		if _, _, err := runCLI(t.Context(), "man", directory, "--date", date); err == nil || !strings.Contains(err.Error(), "--date must be") {
			t.Errorf("with the date %q: got %v", date, err)
		}
	}
}
