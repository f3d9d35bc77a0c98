package target

import (
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/output"
)

// hasSelection reports whether anything but names says which objects are meant.
func (f *Flags) hasSelection() bool {
	return strings.TrimSpace(f.Selector) != "" || strings.TrimSpace(f.FieldSelector) != "" || f.all
}

// validateSelection refuses flags that exclude each other.
func (f *Flags) validateSelection() error {
	switch {
	case f.all && (f.Selector != "" || f.FieldSelector != ""):
		return vedette.Errorf(vedette.Invalid, "--all means all objects, and a selector some of them: leave one out")
	case f.AllNamespaces && f.Namespace != "":
		return vedette.Errorf(vedette.Invalid, "-n names one namespace and -A means all of them: leave one out")
	case len(f.Files) > 0 && (f.all || f.AllNamespaces || f.FieldSelector != ""):
		return vedette.Errorf(vedette.Invalid, "-f names objects, and --all, -A and --field-selector choose some: leave one out")
	case f.Change.IsClientDryRun() && len(f.Files) == 0 && f.hasSelection():
		return vedette.Errorf(vedette.Invalid, "--dry-run=client asks no cluster, so that it can't know which objects are chosen: write --dry-run=server")
	}
	return nil
}

// validateArg refuses a target that does not say which objects are meant.
func (f *Flags) validateArg(arg ResourceArg) error {
	switch {
	case arg.Name == "" && !f.hasSelection():
		hint := ""
		if f.verb != "" {
			hint = ", or say --all"
		}
		return vedette.Errorf(vedette.Invalid, "say which %s are meant: name them, or choose them by labels with -l%s", arg.Kind, hint)
	case arg.Name != "" && f.Selector != "":
		return vedette.Errorf(vedette.Invalid, "the name %s and the selector -l exclude each other", arg.Name)
	case arg.Name != "" && (f.all || f.AllNamespaces || f.FieldSelector != ""):
		return vedette.Errorf(vedette.Invalid, "%s is named, and --all, -A and --field-selector choose others: leave one out", arg.Name)
	case arg.Account != "" && f.Account != "":
		return vedette.Errorf(vedette.Invalid, "%s names its account: leave --account out", output.ObjectPath(arg.Account, arg.Kind, arg.Namespace, arg.Name))
	}
	return nil
}
