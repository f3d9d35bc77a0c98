package main

import (
	"strings"

	"github.com/vedette-io/vedette"
)

// chooses reports whether anything but names says which objects are meant.
func (a *aims) chooses() bool {
	return strings.TrimSpace(a.selector) != "" || strings.TrimSpace(a.fieldSelector) != "" || a.all
}

// checkChoice refuses flags that exclude each other.
func (a *aims) checkChoice() error {
	switch {
	case a.all && (a.selector != "" || a.fieldSelector != ""):
		return vedette.Errorf(vedette.Invalid, "--all means all objects, and a selector some of them: leave one out")
	case a.allNamespaces && a.namespace != "":
		return vedette.Errorf(vedette.Invalid, "-n names one namespace and -A means all of them: leave one out")
	case len(a.files) > 0 && (a.all || a.allNamespaces || a.fieldSelector != ""):
		return vedette.Errorf(vedette.Invalid, "-f names objects, and --all, -A and --field-selector choose some: leave one out")
	case a.manner.local() && len(a.files) == 0 && a.chooses():
		return vedette.Errorf(vedette.Invalid, "--dry-run=client asks no cluster, so that it can't know which objects are chosen: write --dry-run=server")
	}
	return nil
}

// check refuses a target that does not say which objects are meant.
func (a *aims) check(t target) error {
	switch {
	case t.name == "" && !a.chooses():
		all := ""
		if a.verb != "" {
			all = ", or say --all"
		}
		return vedette.Errorf(vedette.Invalid, "say which %s are meant: name them, or choose them by labels with -l%s", t.kind, all)
	case t.name != "" && a.selector != "":
		return vedette.Errorf(vedette.Invalid, "the name %s and the selector -l exclude each other", t.name)
	case t.name != "" && (a.all || a.allNamespaces || a.fieldSelector != ""):
		return vedette.Errorf(vedette.Invalid, "%s is named, and --all, -A and --field-selector choose others: leave one out", t.name)
	case t.account != "" && a.account != "":
		return vedette.Errorf(vedette.Invalid, "%s names its account: leave --account out", path(t.account, t.kind, t.namespace, t.name))
	}
	return nil
}
