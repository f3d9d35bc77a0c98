package versioning

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// comparison finds out which candidates were made from a manifest.
type comparison struct {
	Chooser
	digests map[string][]byte // of the manifest, by rounds and salt
}

// object is a JSON object. Whole numbers in it are int64.
type object = map[string]any

var (
	configMapKind = vedette.Kind{Name: "ConfigMap"}
	secretKind    = vedette.Kind{Name: "Secret"}
)

// matches reports whether an object was made from the manifest. It compares the last-applied
// annotation, or else our digest, or else the ConfigMap itself.
func (c *comparison) matches(ctx context.Context, x Candidate) (bool, error) {
	switch {
	case len(x.lastApplied) > 0:
		return sameContent(c.Manifest.Object, x.lastApplied), nil
	case len(x.digest) > 0:
		return c.matchesDigest(ctx, x.digest)
	case c.Series.Kind == configMapKind:
		return c.matchesConfigMap(ctx, x.name)
	}
	return false, nil
}

// matchesDigest compares with a digest. Deriving one is slow on purpose, so it is done once for all
// candidates that share a salt, and not after the deadline.
func (c *comparison) matchesDigest(ctx context.Context, annotation sensitiveBytes) (bool, error) {
	d, ok := parseDigest(annotation)
	if !ok {
		return false, nil
	}
	key := string(d.parameters())
	if c.digests[key] == nil {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		c.digests[key] = d.sum(c.Manifest)
	}
	return d.matches(c.digests[key]), nil
}

func (c *comparison) matchesConfigMap(ctx context.Context, name string) (bool, error) {
	raw, found, err := c.ReadConfigMap(ctx, name)
	if !found || err != nil { // it may have been deleted meanwhile
		return false, err
	}
	var existing, desired configData
	if err := json.Unmarshal(raw, &existing); err != nil {
		return false, vedette.Errorf(vedette.Unavailable, "the cluster's response for %s is invalid%s",
			vedette.Key{Kind: c.Series.Kind, Namespace: c.Series.Namespace, Name: name}, manifest.SyntaxErrorOffset(err))
	}
	if json.Unmarshal(c.Manifest.Encode(), &desired) != nil {
		return false, nil // the API server will reject it
	}
	return existing.equal(desired), nil
}

// configData is the content of a ConfigMap.
type configData struct {
	Data       map[string]string
	BinaryData map[string][]byte
	Immutable  bool
}

func (d configData) equal(other configData) bool {
	return maps.Equal(d.Data, other.Data) && maps.EqualFunc(d.BinaryData, other.BinaryData, bytes.Equal) && d.Immutable == other.Immutable
}

// sameContent reports whether a manifest equals a stored one, in JSON, apart from their metadata.
// It clears what it decodes of the stored one, which may be the data of a Secret, but not stored
// itself.
func sameContent(m object, stored []byte) bool {
	m = maps.Clone(m)
	delete(m, "metadata")
	var members map[string]json.RawMessage
	if json.Unmarshal(stored, &members) != nil {
		return false
	}
	defer wipeMembers(members)
	clear(members["metadata"])
	delete(members, "metadata")
	return sameMembers(m, members)
}

func sameMembers(o object, members map[string]json.RawMessage) bool {
	if len(o) != len(members) {
		return false
	}
	for name, value := range o {
		raw, found := members[name]
		if !found || !sameValue(value, raw) {
			return false
		}
	}
	return true
}

// sameValue compares numbers by value: 1 equals 1.0.
func sameValue(value any, raw []byte) bool {
	switch v := value.(type) {
	case object:
		var members map[string]json.RawMessage
		err := json.Unmarshal(raw, &members)
		defer wipeMembers(members)
		return err == nil && members != nil && sameMembers(v, members)
	case []any:
		var elements []json.RawMessage
		err := json.Unmarshal(raw, &elements)
		defer func() {
			for _, e := range elements {
				clear(e)
			}
		}()
		return err == nil && elements != nil && sameElements(v, elements)
	case string:
		var text sensitiveBytes
		err := json.Unmarshal(raw, &text)
		defer clear(text)
		return err == nil && raw[0] == '"' && string(text) == v
	case int64:
		return sameNumber(float64(v), raw) && sameInteger(v, raw)
	case float64:
		return sameNumber(v, raw)
	case bool:
		var b *bool
		return json.Unmarshal(raw, &b) == nil && b != nil && *b == v
	}
	return string(raw) == "null"
}

func sameElements(list []any, elements []json.RawMessage) bool {
	if len(list) != len(elements) {
		return false
	}
	for i, value := range list {
		if !sameValue(value, elements[i]) {
			return false
		}
	}
	return true
}

func sameNumber(n float64, raw []byte) bool {
	var f *float64
	return json.Unmarshal(raw, &f) == nil && f != nil && *f == n
}

// sameInteger compares integers that may be equal as float64 only. It returns true if raw is not
// written as an integer, because sameNumber has compared it.
func sameInteger(n int64, raw []byte) bool {
	var i int64
	return json.Unmarshal(raw, &i) != nil || i == n
}

func wipeMembers(members map[string]json.RawMessage) {
	for _, raw := range members {
		clear(raw)
	}
}
