package task

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/mask"
)

// maskOutcome masks the values of Secrets that an operation writes, in its outcome. Clusters
// can quote what they reject. Agents mask it by the same rules; this is for older agents with
// fewer rules.
func maskOutcome(args vedette.Args, out vedette.Outcome) vedette.Outcome {
	if out.Message == "" && out.Reason == "" {
		return out
	}
	values := secretValues(args)
	out.Message, out.Reason = values.Mask(out.Message), values.Mask(out.Reason)
	return out
}

// secretValues returns the values of the Secrets in the manifest or patch of an operation,
// including embedded ones.
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
