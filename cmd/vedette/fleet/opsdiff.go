package fleet

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
)

// changedText says which objects an operation changed, without their patches.
func changedText(p client.HistoryEntry) string {
	switch len(p.Changes) {
	case 0:
		return ""
	case 1:
		return changeHeader(p.Changes[0])
	}
	return output.Count(len(p.Changes), "object")
}

func changeHeader(c client.Change) string {
	name := c.Name
	if c.Namespace != "" {
		name = c.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s, resourceVersion %s -> %s", c.Kind, name, cmp.Or(c.Before, "<none>"), cmp.Or(c.After, "<none>"))
}

// printChanges prints what an operation changed: a line with "-" for each value before, and one with "+" for each after.
func printChanges(out *output.Printer, p client.HistoryEntry) {
	out.Line("")
	if len(p.Changes) == 0 {
		out.Line(noChangesText(p))
		return
	}
	for _, c := range p.Changes {
		out.Line(changeHeader(c))
		for _, line := range patchLines(c.Patch) {
			out.Line("  " + line)
		}
		if c.Note != "" {
			out.Line("  (" + c.Note + ")")
		} else if len(c.Patch) == 0 {
			out.Line("  (nothing changed that the record may show: the data of Secrets and redacted values are not in it)")
		}
	}
}

func noChangesText(p client.HistoryEntry) string {
	switch {
	case p.State == client.Pending:
		return "The operation has not ended: what it changes is recorded then."
	case p.DryRun:
		return "A dry run changes nothing."
	}
	return "Nothing was changed, or the operation was executed by an agent of a release that does not say what it changes."
}

// patchLines returns the values before and after. A value before is in a test, which the step that changes it follows.
func patchLines(patch []client.PatchStep) []string {
	var lines []string
	for _, step := range patch {
		path, value := cmp.Or(step.Path, "/"), strings.TrimSpace(string(step.Value))
		switch step.Op {
		case "test":
			lines = append(lines, "- "+path+": "+value)
		case "add", "replace":
			lines = append(lines, "+ "+path+": "+value)
		case "remove":
			if len(lines) == 0 { // of the whole object
				lines = append(lines, "- "+path)
			}
		}
	}
	return lines
}
