package output

import (
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/server/views"
)

// KindName is a kind as kubectl prints it: "deployment.apps", "pod". Names of
// kinds that every cluster serves may be written as kubectl takes them.
func KindName(kind string) string {
	k := vedette.ParseKind(kind)
	if known, err := views.FindResource(nil, kind); err == nil {
		k = known.Kind
	}
	k.Name = strings.ToLower(k.Name)
	return k.String()
}

// ObjectName is an outcome's object as kubectl prints it, "deployment.apps/web"; what
// the user wrote where the outcome tells none.
func ObjectName(out client.Outcome, fallback string) string {
	if len(out.Keys) != 1 {
		return fallback
	}
	return KindName(out.Keys[0].Kind) + "/" + out.Keys[0].Name
}

// ObjectPath is how an object is named in the API's paths, and how get takes it.
func ObjectPath(account, kind, namespace, name string) string {
	if namespace == "" {
		namespace = "_"
	}
	return account + "/" + kind + "/" + namespace + "/" + name
}
