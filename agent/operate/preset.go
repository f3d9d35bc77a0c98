package operate

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/redact"
)

// checkPreset rejects what the strict preset does not allow: pods' logs, whose content nobody knows.
func (r *run) checkPreset() error {
	if _, isLogs := r.Operation.Args.(vedette.LogsArgs); isLogs && r.Redactor().IsStrict() {
		return vedette.Errorf(vedette.Denied, "the agent sends no logs of pods, because redact.preset is strict: read them in the cluster")
	}
	return nil
}

// checkMarker rejects a manifest that was read through the strict preset, of any agent. To apply it would remove from the
// object whatever the preset has cut.
func checkMarker(m manifest.Manifest) error {
	if manifest.Nested(m.Object, "metadata", "annotations", redact.MarkerAnnotation) == nil {
		return nil
	}
	return vedette.Errorf(vedette.Invalid, "the manifest has the annotation %s: it was read from a cluster whose agent sends only a part of "+
		"each object (redact.preset: strict), and to apply it would remove the rest. Apply the original manifest, or patch the object", redact.MarkerAnnotation)
}
