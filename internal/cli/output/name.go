package output

import (
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/internal/nearest"
	"github.com/vedette-io/vedette/server/tables"
)

// CheckFormat rejects a value of -o that is neither empty nor one of the formats.
func CheckFormat(value string, formats ...string) error {
	if value == "" || slices.Contains(formats, value) {
		return nil
	}
	return vedette.Errorf(vedette.Invalid, "invalid output format %q: use -o %s", value, nearest.OneOf(formats))
}

// KindName returns a kind as kubectl prints it: "deployment.apps", "pod". It accepts the
// plural and short names of kinds that every cluster serves ("deploy").
func KindName(kind string) string {
	k := vedette.ParseKind(kind)
	if known, err := tables.FindResource(nil, kind); err == nil {
		k = known.Kind
	}
	k.Name = strings.ToLower(k.Name)
	return k.String()
}

// ObjectName returns the object of an outcome as kubectl prints it, "deployment.apps/web". It
// returns fallback if the outcome does not have exactly one object.
func ObjectName(out client.Outcome, fallback string) string {
	if len(out.Keys) != 1 {
		return fallback
	}
	return KindName(out.Keys[0].Kind) + "/" + out.Keys[0].Name
}

// ObjectPath returns an object's name in the API's paths, which `vedette get` accepts too.
// Cluster-scoped objects have the namespace "_".
func ObjectPath(account, kind, namespace, name string) string {
	if namespace == "" {
		namespace = "_"
	}
	return account + "/" + kind + "/" + namespace + "/" + name
}
