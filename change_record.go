package vedette

import "encoding/json"

// ObjectChange is what an operation changed of one object, for the history. It contains nothing that
// redaction removes.
type ObjectChange struct {
	Key Key
	// Before and After are the resourceVersions. Before is empty if the operation created the object, or if it did not
	// read it; After is empty if it deleted it.
	Before, After string
	// Patch is a JSON patch (RFC 6902) from the object before to the object after. Each value that it replaces or
	// removes is in a test before, so that the patch tells both. Empty if Note says why, or if nothing changed that may be
	// known: the data of Secrets and redacted values are not in it.
	Patch json.RawMessage
	// TemplateBefore and TemplateAfter are digests of the pod template; empty if there is none. They tell which change an
	// undo takes back.
	TemplateBefore, TemplateAfter string
	Note                          string // what the patch lacks, and why; empty if it is complete
}

// The limits of what the history keeps of an operation's changes.
const (
	MaxPatchBytes    = 16 << 10 // of one object
	MaxChangesBytes  = 64 << 10 // of all objects
	MaxChangeObjects = 1000
)
