package task

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/mask"
)

// maskOutcome masks the values of the Secrets that an operation writes, in its outcome. Agents do
// the same. The server does it too for agents of older versions, which may know fewer forms.
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
		return mask.PatchValues(a.Kind, a.Patch)
	case vedette.ApplyArgs:
		return mask.ManifestValues(a.Manifest)
	case vedette.VersionArgs:
		return mask.ManifestValues(a.Manifest)
	}
	return mask.Values{}
}
