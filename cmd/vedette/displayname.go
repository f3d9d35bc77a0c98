package main

import (
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/server/views"
)

// kindDisplayName is a kind as kubectl prints it: "deployment.apps", "pod". Names of
// kinds that every cluster serves may be written as kubectl takes them.
func kindDisplayName(kind string) string {
	k := vedette.ParseKind(kind)
	if known, err := views.FindResource(nil, kind); err == nil {
		k = known.Kind
	}
	k.Name = strings.ToLower(k.Name)
	return k.String()
}

// objectDisplayName is an outcome's object as kubectl prints it, "deployment.apps/web"; what
// the user wrote where the outcome tells none.
func objectDisplayName(out client.Outcome, fallback string) string {
	if len(out.Keys) != 1 {
		return fallback
	}
	return kindDisplayName(out.Keys[0].Kind) + "/" + out.Keys[0].Name
}
