package clouddriver

import (
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
)

// kindName writes a kind as Clouddriver does.
func kindName(kind vedette.Kind) string { return manifest.KindName(kind) }

// splitName reads "replicaSet web-v003".
func splitName(name string) (kind, object string, err error) {
	kind, object, ok := strings.Cut(strings.TrimSpace(name), " ")
	object = strings.TrimSpace(object)
	if !ok || object == "" || strings.ContainsAny(object, " /") {
		return "", "", vedette.Errorf(vedette.Invalid, "Expected a full resource name of the form <kind> <name>, got: %.300s", name)
	}
	return kind, object, nil
}
