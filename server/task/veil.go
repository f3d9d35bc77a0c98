package task

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/mask"
)

// veil takes the values of a Secret that an operation writes out of what is told of its
// end. A cluster may quote what it refuses, and the agent hides that by the same rules;
// this is for agents that do not, or know fewer of them.
func veil(args vedette.Args, out vedette.Outcome) vedette.Outcome {
	submitted := secretIn(args)
	if submitted == nil || out.Message == "" && out.Reason == "" {
		return out
	}
	values := mask.Of(submitted)
	out.Message, out.Reason = values.Hide(out.Message), values.Hide(out.Reason)
	return out
}

// secretIn returns the manifest or the patch of a Secret that an operation has, and else
// nil.
func secretIn(args vedette.Args) []byte {
	switch a := args.(type) {
	case vedette.PatchArgs:
		if mask.Secret(a.Kind) {
			return a.Patch
		}
	case vedette.ApplyArgs:
		return ofSecret(a.Manifest)
	case vedette.VersionArgs:
		return ofSecret(a.Manifest)
	}
	return nil
}

func ofSecret(manifest []byte) []byte {
	if mask.SecretManifest(manifest) {
		return manifest
	}
	return nil
}
