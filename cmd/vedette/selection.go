package main

import (
	"strings"

	"github.com/vedette-io/vedette"
)

// hasSelection reports whether anything but names says which objects are meant.
func (f *targetFlags) hasSelection() bool {
	return strings.TrimSpace(f.selector) != "" || strings.TrimSpace(f.fieldSelector) != "" || f.all
}

// validateSelection refuses flags that exclude each other.
func (f *targetFlags) validateSelection() error {
	switch {
	case f.all && (f.selector != "" || f.fieldSelector != ""):
		return vedette.Errorf(vedette.Invalid, "--all means all objects, and a selector some of them: leave one out")
	case f.allNamespaces && f.namespace != "":
		return vedette.Errorf(vedette.Invalid, "-n names one namespace and -A means all of them: leave one out")
	case len(f.files) > 0 && (f.all || f.allNamespaces || f.fieldSelector != ""):
		return vedette.Errorf(vedette.Invalid, "-f names objects, and --all, -A and --field-selector choose some: leave one out")
	case f.change.isClientDryRun() && len(f.files) == 0 && f.hasSelection():
		return vedette.Errorf(vedette.Invalid, "--dry-run=client asks no cluster, so that it can't know which objects are chosen: write --dry-run=server")
	}
	return nil
}

// validateArg refuses a target that does not say which objects are meant.
func (f *targetFlags) validateArg(arg resourceArg) error {
	switch {
	case arg.name == "" && !f.hasSelection():
		hint := ""
		if f.verb != "" {
			hint = ", or say --all"
		}
		return vedette.Errorf(vedette.Invalid, "say which %s are meant: name them, or choose them by labels with -l%s", arg.kind, hint)
	case arg.name != "" && f.selector != "":
		return vedette.Errorf(vedette.Invalid, "the name %s and the selector -l exclude each other", arg.name)
	case arg.name != "" && (f.all || f.allNamespaces || f.fieldSelector != ""):
		return vedette.Errorf(vedette.Invalid, "%s is named, and --all, -A and --field-selector choose others: leave one out", arg.name)
	case arg.account != "" && f.account != "":
		return vedette.Errorf(vedette.Invalid, "%s names its account: leave --account out", objectPath(arg.account, arg.kind, arg.namespace, arg.name))
	}
	return nil
}
