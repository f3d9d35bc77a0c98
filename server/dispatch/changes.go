package dispatch

import (
	"fmt"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// boundChanges returns what an agent says that an operation changed, within the limits. Agents keep them; another peer may
// not.
func boundChanges(changes []vedette.ObjectChange) []vedette.ObjectChange {
	changes = slices.Clone(changes[:min(len(changes), vedette.MaxChangeObjects)]) // without what follows
	room, texts := vedette.MaxChangesBytes, maxChangesTexts
	for i := range changes {
		c := &changes[i]
		c.Note = vedette.CleanText(c.Note, maxNote)
		c.Before, c.After = vedette.CleanText(c.Before, maxVersionText), vedette.CleanText(c.After, maxVersionText)
		c.TemplateBefore = vedette.CleanText(c.TemplateBefore, maxVersionText)
		c.TemplateAfter = vedette.CleanText(c.TemplateAfter, maxVersionText)
		cleanKey(&c.Key)
		switch {
		case len(c.Patch) == 0:
			c.Patch = nil
		case len(c.Patch) > min(room, vedette.MaxPatchBytes):
			c.Patch, c.Note = nil, "the agent sent a patch that is larger than the limit, so it is left out"
		case !isPatch(c.Patch):
			c.Patch, c.Note = nil, "the agent sent a patch that is not valid, so it is left out"
		}
		room -= len(c.Patch)
		if texts -= textBytes(c); texts < 0 {
			note := fmt.Sprintf("the texts of %d more objects are larger than the limit, so these are left out", len(changes)-i)
			changes[max(0, i-1)].Note = note
			return changes[:max(1, i)]
		}
	}
	return changes
}

// cleanKey makes the key of an agent's outcome safe to keep.
func cleanKey(k *vedette.Key) {
	for _, text := range []*string{&k.Name, &k.Namespace, &k.Kind.Name, &k.Kind.Group} {
		*text = vedette.CleanText(*text, maxNote)
	}
}

// maxChangesTexts is the maximum length of all names, versions and notes of an operation's changes, in bytes. Agents of ours need a
// fifth of it for names of the usual length.
const maxChangesTexts = 1 << 20

// keyBytes returns the length of the texts of a key.
func keyBytes(k *vedette.Key) int {
	return len(k.Name) + len(k.Namespace) + len(k.Kind.Name) + len(k.Kind.Group)
}

// textBytes returns the length of the texts of a change besides its patch.
func textBytes(c *vedette.ObjectChange) int {
	return keyBytes(&c.Key) + len(c.Before) + len(c.After) +
		len(c.TemplateBefore) + len(c.TemplateAfter) + len(c.Note)
}

// maxVersionText is the maximum length of a resourceVersion in the history, in bytes.
const maxVersionText = 255

func isPatch(raw []byte) bool {
	var steps []struct {
		Op   string `json:"op"`
		Path string `json:"path"`
	}
	return exactjson.Unmarshal(raw, &steps, exactjson.Limits{}) == nil
}

// setKnownVersion sets the version of a deleted object that the agent did not read, because the server knew its uid: the
// last one that was stored.
func (f *inflight) setKnownVersion(out *vedette.Outcome) {
	for i := range out.Changes {
		if c := &out.Changes[i]; c.Before == "" && c.Key == f.known.key && f.known.uid != "" {
			c.Before = f.known.version
		}
	}
}
