package clouddriver

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
)

// kindName formats a kind as Clouddriver does.
func kindName(kind vedette.Kind) string { return manifest.KindName(kind) }

// splitName parses a name like "replicaSet web-v003".
func splitName(name string) (kind, object string, err error) { return manifest.SplitName(name) }
