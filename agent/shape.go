package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/watch"
)

// redactionVersion counts the changes of the built-in redaction rules. If it differs from
// that of the agent that reported an account before, the server discards the account's
// objects.
const redactionVersion = 3

// presetVersion counts the changes of what presets keep, like redactionVersion.
const presetVersion = 1

// shapeOf returns a short digest of everything that determines the content of an
// account's objects. Kinds and namespaces are not part of it, because they determine the
// feeds, which the agent declares to the server.
// docs/decisions/0006 says why all objects are reported again when it changes.
func shapeOf(rules redact.Config, s watch.Selection) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %q %q %q %q %t", redactionVersion,
		rules.Annotations, rules.ConfigMapKeys, rules.Environment, rules.SecretAnnotations, s.OmitNamespaces, s.OnlySpinnakerManaged))
	if rules.Preset != "" {
		sum = sha256.Sum256(fmt.Appendf(sum[:], "%s %d", rules.Preset, presetVersion))
	}
	return hex.EncodeToString(sum[:8])
}
