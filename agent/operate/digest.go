package operate

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/redact"
)

// digest is what an object's content annotation holds: by it a manifest is known
// again without a copy of it. It is written as rounds, salt and tag.
//
// The salt is random, so that nothing can be computed ahead, and equal Secrets
// of two clusters, namespaces or series look different. The rounds make each
// guess at a password as slow as a login's is. There is no key to lose or to
// steal: any agent of the cluster can compare.
type digest struct {
	rounds    int
	salt, tag []byte
}

const (
	// secretRounds take 0.1 to 0.4 s: what OWASP asks of PBKDF2 with SHA-256.
	secretRounds = 600_000
	// nonSecretRounds are for what can be read where the digest can.
	nonSecretRounds = 1
	// maxRounds bound what an annotation that others wrote can cost.
	maxRounds = 1_000_000
	saltBytes = 16
	tagBytes  = sha256.Size
)

// parseDigest reads an annotation.
func parseDigest(text []byte) (digest, bool) {
	parts := bytes.Split(text, []byte("."))
	if len(parts) != 3 {
		return digest{}, false
	}
	rounds, err := strconv.Atoi(string(parts[0]))
	salt, saltErr := decode64(parts[1])
	tag, tagErr := decode64(parts[2])
	d := digest{rounds, salt, tag}
	return d, err == nil && saltErr == nil && tagErr == nil && rounds > 0 && rounds <= maxRounds && len(salt) == saltBytes && len(tag) == tagBytes
}

func decode64(text []byte) ([]byte, error) {
	return base64.RawURLEncoding.AppendDecode(nil, text)
}

// parameters is what a digest must have in common with another to be compared.
func (d digest) parameters() []byte {
	return fmt.Appendf(nil, "%d.%s", d.rounds, base64.RawURLEncoding.EncodeToString(d.salt))
}

// encode is the annotation.
func (d digest) encode() string {
	return fmt.Sprintf("%s.%s", d.parameters(), base64.RawURLEncoding.EncodeToString(d.tag))
}

// sum derives the tag of a manifest without its metadata.
func (d digest) sum(m manifest.Manifest) []byte {
	content := canonicalContent(m)
	defer clear(content)
	mac := hmac.New(sha256.New, d.salt)
	mac.Write(content)
	tag, err := pbkdf2.Key(sha256.New, string(mac.Sum(nil)), d.salt, d.rounds, tagBytes)
	if err != nil { // only of parameters that are none
		panic(err)
	}
	return tag
}

func (d digest) matches(tag []byte) bool { return hmac.Equal(d.tag, tag) }

// canonicalContent writes a manifest without its metadata, in one way whatever the order
// of its members.
func canonicalContent(m manifest.Manifest) []byte {
	content := maps.Clone(m.Object)
	delete(content, "metadata")
	raw, err := json.Marshal(content)
	if err != nil { // what was decoded can be encoded
		panic(err)
	}
	return raw
}

// setDigest writes the digest of what makes an object into its manifest, where it has
// versions and nothing else will tell what it was made from: a client-side apply
// leaves the manifest itself, and a ConfigMap is its own.
func (r *run) setDigest(ctx context.Context, p resourcePath, m manifest.Manifest) {
	if m.Name == "" || m.Annotation(artifactVersion) == "" || p.Kind == configMapKind {
		return
	}
	d := digest{rounds: nonSecretRounds, salt: r.saltFor(ctx, p, m)}
	if p.isSecret() {
		d.rounds = secretRounds
	}
	d.tag = d.sum(m)
	m.Meta()["annotations"].(object)[redact.ContentAnnotation] = d.encode() // which has artifactVersion
}

// clearDigest drops a digest that was copied from a live object.
func clearDigest(m manifest.Manifest) {
	if annotations, ok := m.Meta()["annotations"].(object); ok {
		delete(annotations, redact.ContentAnnotation)
	}
}

// saltFor is the one that the object has, so that the same manifest applied again
// changes nothing, or else that of its series, or else a new one.
func (r *run) saltFor(ctx context.Context, p resourcePath, m manifest.Manifest) []byte {
	if d, found := r.liveDigest(ctx, p); found {
		return d.salt
	}
	if salt := r.operator.salts.get(seriesOf(p, m)); salt != nil {
		return salt
	}
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // it never fails
	return salt
}

// liveDigest reads the digest of an object. Where it can't be read a new salt
// does no harm.
func (r *run) liveDigest(ctx context.Context, p resourcePath) (digest, bool) {
	raw, _, err := r.do(ctx, p, request{accept: withFullObjectFallback(p, acceptMetadata), sensitive: p.isSecret()})
	if err != nil {
		return digest{}, false
	}
	defer clear(raw)
	var meta sensitiveMeta
	defer func() { meta.wipe() }()
	if json.Unmarshal(raw, &meta) != nil {
		return digest{}, false
	}
	return parseDigest(meta.Metadata.Annotations[redact.ContentAnnotation])
}
