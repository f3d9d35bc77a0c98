package task

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/mask"
)

// maskOutcome takes the values of Secrets that an operation writes out of what is told of its
// end. A cluster may quote what it refuses, and the agent hides that by the same rules;
// this is for agents that do not, or know fewer of them.
func maskOutcome(args vedette.Args, out vedette.Outcome) vedette.Outcome {
	if out.Message == "" && out.Reason == "" {
		return out
	}
	values := secretValues(args)
	out.Message, out.Reason = values.Mask(out.Message), values.Mask(out.Reason)
	return out
}

// secretValues returns the values of the Secret whose manifest or patch an operation has, or
// of those that are embedded in it.
func secretValues(args vedette.Args) mask.Values {
	switch a := args.(type) {
	case vedette.PatchArgs:
		if mask.IsSecretKind(a.Kind) {
			return mask.SecretValues(a.Patch)
		}
		return mask.EmbeddedSecretValues(a.Patch)
	case vedette.ApplyArgs:
		return manifestSecretValues(a.Manifest)
	case vedette.VersionArgs:
		return manifestSecretValues(a.Manifest)
	}
	return mask.Values{}
}

func manifestSecretValues(manifest []byte) mask.Values {
	if mask.IsSecretManifest(manifest) {
		return mask.SecretValues(manifest)
	}
	return mask.EmbeddedSecretValues(manifest)
}
