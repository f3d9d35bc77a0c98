package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/watch"
)

// redactionVersion counts the changes of what redaction does without being told to. An
// agent with another count has the server forget what the last one told.
const redactionVersion = 3

// projectionHash folds what decides how an account's objects look into a short text.
// Kinds and namespaces are not part of it: they decide which feeds there are,
// and the server is told those.
func projectionHash(rules redact.Config, s watch.Selection) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %q %q %q %q %t", redactionVersion,
		rules.Annotations, rules.ConfigMapKeys, rules.Environment, rules.SecretAnnotations, s.OmitNamespaces, s.OnlySpinnakerManaged))
	return hex.EncodeToString(sum[:8])
}
