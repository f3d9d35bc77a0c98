package redact

import "bytes"

// signs are what an object's members tell of whether it is a Secret.
type signs struct {
	named   bool // its kind says so
	foreign bool // its apiVersion says that it is somebody else's Secret
}

// read takes in one member. References to Secrets look like Secrets; they hold
// nothing that could be cut.
func (s *signs) read(p *pass, name []byte, value int) {
	switch string(name) {
	case "kind":
		text, _ := p.stringAt(value)
		s.named = s.named || namesSecret(text, false)
	case "apiVersion":
		text, ok := p.stringAt(value)
		s.foreign = s.foreign || ok && string(text) != "v1"
	}
}

func (s *signs) secret() bool { return s.named && !s.foreign }

// namesSecret reports whether the inside of a JSON string is the kind of
// something that holds Secrets' data.
func namesSecret(text []byte, escaped bool) bool {
	if escaped {
		if len(text) > 6*len("SecretList") {
			return false
		}
		text = unescape(make([]byte, 0, 64), text)
	}
	return string(text) == "Secret" || string(text) == "SecretList"
}

// again walks an object that turned out to be a Secret after it was copied,
// since kind may stand behind data. What was copied of it is wiped first.
func (p *pass) again(i int, n *node, in role, before place) (int, error) {
	p.back(before)
	p.gather.clear(n)
	secret, careful := p.secret, p.careful
	p.secret, p.careful, p.tainted = true, true, true
	if in == root {
		p.said = saying{}
	}
	end, err := p.object(i, n, in)
	if in != root {
		p.secret, p.careful = secret, careful
	}
	return end, err
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// ContentAnnotation holds a salted digest of the manifest that an object was
// made from, by which the agent knows a Secret's manifest again. It stays in the
// cluster, whatever kind it stands on: a digest of few possible values can be
// guessed from.
const ContentAnnotation = "vedette.io/content"

// annotationRole decides on one annotation, whose value starts at i.
func (p *pass) annotationRole(name []byte, i int) role {
	rules := &p.redactor.rules
	applied := string(name) == lastApplied
	switch {
	case string(name) == ContentAnnotation:
		return dropped
	case p.secret && !rules.kept(name):
		return dropped
	case applied && (p.secret || rules.everywhere() || p.configMap && len(rules.configMapKeys) > 0):
		return dropped
	case rules.annotations.match(name):
		return replaced
	case p.at(i) != '"':
		return plain
	}
	end, escaped, err := p.quoted(i)
	if err != nil {
		return plain // walking it will tell
	}
	value := p.raw[i+1 : end-1]
	if p.secret && !p.harmless(value, escaped) || !p.secret && p.telling(value, escaped) {
		return dropped
	}
	return plain
}

// maxHarmless is the length of the longest annotation that a Secret keeps, in
// bytes. Those that are kept hold names; manifests are longer.
const maxHarmless = 256

// harmless reports whether the value of an annotation whose name a Secret keeps may
// stay too. A name says what should stand there, not what does, and a user's pattern
// may fit more than was meant: tools leave copies of manifests in annotations, as
// JSON, as YAML, or compressed. So whatever could hold structure goes: brackets or a
// line break anywhere, the beginning of something encoded, or sheer length.
func (p *pass) harmless(value []byte, escaped bool) bool {
	if len(value) > 6*maxHarmless {
		return false
	}
	if escaped {
		value = p.plainText(value)
	}
	return len(value) <= maxHarmless && !bytes.ContainsAny(value, "{[\n\r") && !packed(value) && !encoded(value)
}

// telling reports whether an annotation of something else than a Secret must go
// because it holds, as text, a Secret's manifest, or what a rule redacts. What
// is compressed tells nothing, and goes.
func (p *pass) telling(value []byte, escaped bool) bool {
	rules := &p.redactor.rules
	ruled := rules.everywhere() || p.configMap && len(rules.configMapKeys) > 0
	if packed(value) || ruled && encoded(value) {
		return true
	}
	if !escaped { // and so without a quote or a line break
		return bytes.Contains(value, []byte("kind: Secret"))
	}
	text, done := p.resolved(value)
	return !done || packed(text) || ruled && encoded(text) ||
		bytes.Contains(text, []byte(`"Secret"`)) || bytes.Contains(text, []byte(`"SecretList"`)) ||
		bytes.Contains(text, []byte("kind: Secret")) || rules.mention(text, p.configMap)
}

// maxLayers is how many layers of JSON within JSON strings are looked through.
const maxLayers = 6

// resolved resolves the escapes of text layer by layer, as manifests hold
// annotations that hold manifests. It reports false where that did not come to
// an end.
func (p *pass) resolved(text []byte) ([]byte, bool) {
	for range maxLayers {
		if bytes.IndexByte(text, '\\') < 0 {
			return text, true
		}
		p.scratch = append(p.scratch[:0], text...)
		short := unescape(p.scratch[:0], p.scratch) // in place: it never gets longer
		if len(short) == len(text) {
			return short, true // backslashes that escape nothing
		}
		text = short
	}
	return text, bytes.IndexByte(text, '\\') < 0
}

// packed reports whether text is the base64 of gzip, zstd or zip.
func packed(text []byte) bool {
	return bytes.HasPrefix(text, []byte("H4sI")) || bytes.HasPrefix(text, []byte("KLUv/")) || bytes.HasPrefix(text, []byte("UEsD"))
}

// encoded reports whether text is the base64 of a JSON object.
func encoded(text []byte) bool { return bytes.HasPrefix(text, []byte("eyJ")) }
