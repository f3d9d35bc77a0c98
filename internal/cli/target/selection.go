package target

import (
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/output"
)

// hasSelection reports whether a selector or --all selects objects.
func (f *Flags) hasSelection() bool {
	return strings.TrimSpace(f.Selector) != "" || strings.TrimSpace(f.FieldSelector) != "" || f.all
}

// validateSelection rejects flags that exclude each other.
func (f *Flags) validateSelection() error {
	switch {
	case f.all && (f.Selector != "" || f.FieldSelector != ""):
		return vedette.Errorf(vedette.Invalid, "--all and a selector exclude each other")
	case f.AllNamespaces && f.Namespace != "":
		return vedette.Errorf(vedette.Invalid, "-n and -A exclude each other")
	case len(f.Files) > 0 && (f.all || f.AllNamespaces || f.FieldSelector != ""):
		return vedette.Errorf(vedette.Invalid, "-f cannot be combined with --all, -A or --field-selector")
	case f.Change.IsClientDryRun() && len(f.Files) == 0 && f.hasSelection():
		return vedette.Errorf(vedette.Invalid,
			"--dry-run=client does not contact the clusters and cannot evaluate selectors: use --dry-run=server")
	}
	return nil
}

// validateArg rejects an argument that does not select objects, or whose name contradicts a
// selector.
func (f *Flags) validateArg(arg ResourceArg) error {
	switch {
	case arg.Name == "" && !f.hasSelection():
		hint := " or -l SELECTOR"
		if f.verb != "" {
			hint = ", -l SELECTOR or --all"
		}
		return vedette.Errorf(vedette.Invalid, "no %s selected: use TYPE NAME, TYPE/NAME%s", arg.Kind, hint)
	case arg.Name != "" && f.Selector != "":
		return vedette.Errorf(vedette.Invalid, "the name %s and -l exclude each other", arg.Name)
	case arg.Name != "" && (f.all || f.AllNamespaces || f.FieldSelector != ""):
		return vedette.Errorf(vedette.Invalid, "the name %s cannot be combined with --all, -A or --field-selector", arg.Name)
	case arg.Account != "" && f.Account != "":
		return vedette.Errorf(vedette.Invalid, "%s contains its account: remove --account",
			output.ObjectPath(arg.Account, arg.Kind, arg.Namespace, arg.Name))
	}
	return nil
}
