package versioning

import (
	"bytes"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/redact"
)

// digest is the value of an object's content annotation. It identifies the manifest of the object
// without a copy of it. It is written as rounds, salt and tag.
//
// The salt is random, so that nothing can be computed in advance, and equal Secrets of two
// clusters, namespaces or series have different digests. The rounds make each guess at a
// password slow. No key is needed, so none can be lost or stolen, and any agent of the cluster can
// compare.
type digest struct {
	rounds    int
	salt, tag []byte
}

const (
	// secretRounds take 0.1 to 0.4 s: what OWASP asks of PBKDF2 with SHA-256.
	secretRounds = 600_000
	// nonSecretRounds is 1, because whoever can read the digest can read the object too.
	nonSecretRounds = 1
	// maxRounds limits the cost of an annotation that others wrote.
	maxRounds = 1_000_000
	saltBytes = 16
	tagBytes  = sha256.Size
)

func parseDigest(text []byte) (digest, bool) {
	parts := bytes.Split(text, []byte("."))
	if len(parts) != 3 {
		return digest{}, false
	}
	rounds, err := strconv.Atoi(string(parts[0]))
	salt, saltErr := decode64(parts[1])
	tag, tagErr := decode64(parts[2])
	d := digest{rounds, salt, tag}
	return d, err == nil && saltErr == nil && tagErr == nil && rounds > 0 && rounds <= maxRounds && len(salt) == saltBytes &&
		len(tag) == tagBytes
}

func decode64(text []byte) ([]byte, error) {
	return base64.RawURLEncoding.AppendDecode(nil, text)
}

// parameters returns what two digests must have in common to be comparable.
func (d digest) parameters() []byte {
	return fmt.Appendf(nil, "%d.%s", d.rounds, base64.RawURLEncoding.EncodeToString(d.salt))
}

// encode returns the value of the annotation.
func (d digest) encode() string {
	return fmt.Sprintf("%s.%s", d.parameters(), base64.RawURLEncoding.EncodeToString(d.tag))
}

// sum derives the tag of a manifest, without its metadata.
func (d digest) sum(m manifest.Manifest) []byte {
	content := canonicalContent(m)
	defer clear(content)
	mac := hmac.New(sha256.New, d.salt)
	mac.Write(content)
	tag, err := pbkdf2.Key(sha256.New, string(mac.Sum(nil)), d.salt, d.rounds, tagBytes)
	if err != nil { // only if a parameter is invalid
		panic(err)
	}
	return tag
}

func (d digest) matches(tag []byte) bool { return hmac.Equal(d.tag, tag) }

// canonicalContent encodes a manifest without its metadata. The result does not depend on the
// order of members.
func canonicalContent(m manifest.Manifest) []byte {
	content := maps.Clone(m.Object)
	delete(content, "metadata")
	raw, err := json.Marshal(content)
	if err != nil { // what was decoded can be encoded
		panic(err)
	}
	return raw
}

// NeedsDigest reports whether a digest must be written into the manifest of an object: it has a
// version, and nothing else will tell from which manifest it was made. Of a client-side apply the
// last-applied annotation does, and a ConfigMap is its own manifest.
func NeedsDigest(kind vedette.Kind, m manifest.Manifest) bool {
	return HasVersion(m) && kind != configMapKind
}

// HasVersion reports whether the object of a manifest is a version of a series.
func HasVersion(m manifest.Manifest) bool {
	return m.Name != "" && m.Annotation(versionAnnotation) != ""
}

// SetDigest writes the digest of a manifest that NeedsDigest into the manifest.
func SetDigest(kind vedette.Kind, m manifest.Manifest, salt []byte) {
	d := digest{rounds: nonSecretRounds, salt: salt}
	if kind == secretKind {
		d.rounds = secretRounds
	}
	d.tag = d.sum(m)
	m.Meta()["annotations"].(object)[redact.ContentAnnotation] = d.encode() // NeedsDigest: it has annotations
}

// ClearDigest removes a digest, which was copied from a live object.
func ClearDigest(m manifest.Manifest) {
	if annotations, ok := m.Meta()["annotations"].(object); ok {
		delete(annotations, redact.ContentAnnotation)
	}
}

// SaltOf returns the salt of the digest of an object, nil if it has none. It clears raw.
func SaltOf(raw []byte) []byte {
	defer clear(raw)
	var meta sensitiveMeta
	defer func() { meta.wipe() }()
	if json.Unmarshal(raw, &meta) != nil {
		return nil
	}
	d, ok := parseDigest(meta.Metadata.Annotations[redact.ContentAnnotation])
	if !ok {
		return nil
	}
	return d.salt
}
