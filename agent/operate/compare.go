package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// comparison tells which objects a manifest made.
type comparison struct {
	run      *run
	path     resourcePath
	manifest manifest.Manifest
	digests  map[string][]byte // of the manifest, by rounds and salt
}

var configMapKind = vedette.Kind{Name: "ConfigMap"}

// matches reports whether an object was made from the manifest: by what kubectl
// wrote of its manifest, or else by the digest that we did. A ConfigMap that has
// neither is its manifest.
func (c *comparison) matches(ctx context.Context, x candidate) (bool, error) {
	switch {
	case len(x.lastApplied) > 0:
		return sameContent(c.manifest.Object, x.lastApplied), nil
	case len(x.digest) > 0:
		return c.matchesDigest(ctx, x.digest)
	case c.path.Kind == configMapKind:
		return c.matchesConfigMap(ctx, x.name)
	}
	return false, nil
}

// matchesDigest compares with a digest. It takes time on purpose, so that it looks at
// the deadline first, and derives once for all objects that share a salt.
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
		c.digests[key] = d.sum(c.manifest)
	}
	return d.matches(c.digests[key]), nil
}

// matchesConfigMap reads a ConfigMap and compares what it holds.
func (c *comparison) matchesConfigMap(ctx context.Context, name string) (bool, error) {
	p := c.path
	p.name = name
	raw, _, err := c.run.do(ctx, p, request{})
	if isNotFound(err) { // deleted meanwhile
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var existing, desired configData
	if err := json.Unmarshal(raw, &existing); err != nil {
		return false, vedette.Errorf(vedette.Unavailable, "what the cluster sent for %s makes no sense%s", p.key(), manifest.SyntaxErrorOffset(err))
	}
	if json.Unmarshal(c.manifest.Encode(), &desired) != nil {
		return false, nil // which the API server will say of it too
	}
	return existing.equal(desired), nil
}

// configData is what a ConfigMap holds.
type configData struct {
	Data       map[string]string
	BinaryData map[string][]byte
	Immutable  bool
}

func (d configData) equal(other configData) bool {
	return maps.Equal(d.Data, other.Data) && maps.EqualFunc(d.BinaryData, other.BinaryData, bytes.Equal) && d.Immutable == other.Immutable
}

// sameContent reports whether a manifest equals one that is written as JSON, but
// for its metadata. It clears what it decodes of the latter, which may be a
// Secret's, and leaves the text itself to the caller.
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

// sameValue compares numbers by value: 1 is 1.0.
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

// sameInteger tells whole numbers apart that are one as a float64. What is not
// written as a whole number was compared as one.
func sameInteger(n int64, raw []byte) bool {
	var i int64
	return json.Unmarshal(raw, &i) != nil || i == n
}

func wipeMembers(members map[string]json.RawMessage) {
	for _, raw := range members {
		clear(raw)
	}
}
