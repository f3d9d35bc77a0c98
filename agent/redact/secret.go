package redact

import "bytes"

// secretHints are what an object's members tell of whether it is a Secret.
type secretHints struct {
	secretKind bool // its kind says so
	otherGroup bool // its apiVersion says that it is somebody else's Secret
}

// recordMember takes in one member. References to Secrets look like Secrets; they hold
// nothing that could be cut.
func (s *secretHints) recordMember(p *pass, name []byte, value int) {
	switch string(name) {
	case "kind":
		text, _ := p.stringAt(value)
		s.secretKind = s.secretKind || isSecretKind(text, false)
	case "apiVersion":
		text, ok := p.stringAt(value)
		s.otherGroup = s.otherGroup || ok && string(text) != "v1"
	}
}

func (s *secretHints) isSecret() bool { return s.secretKind && !s.otherGroup }

// isSecretKind reports whether the inside of a JSON string is the kind of
// something that holds Secrets' data.
func isSecretKind(text []byte, escaped bool) bool {
	if escaped {
		if len(text) > 6*len("SecretList") {
			return false
		}
		text = unescape(make([]byte, 0, 64), text)
	}
	return string(text) == "Secret" || string(text) == "SecretList"
}

// rewalkAsSecret walks an object that turned out to be a Secret after it was copied,
// since kind may stand behind data. What was copied of it is wiped first.
func (p *pass) rewalkAsSecret(i int, n *node, in role, before checkpoint) (int, error) {
	p.rollback(before)
	p.extractor.clearBelow(n)
	inSecret, walkAll := p.inSecret, p.walkAll
	p.inSecret, p.walkAll, p.sawSecret = true, true, true
	if in == roleRoot {
		p.facts = rootFacts{}
	}
	end, err := p.object(i, n, in)
	if in != roleRoot {
		p.inSecret, p.walkAll = inSecret, walkAll
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
	isLastApplied := string(name) == lastApplied
	switch {
	case string(name) == ContentAnnotation:
		return roleDropped
	case p.inSecret && !rules.allowsSecretAnnotation(name):
		return roleDropped
	case isLastApplied && (p.inSecret || rules.anyDepth() || p.configMap && len(rules.configMapKeys) > 0):
		return roleDropped
	case rules.annotations.match(name):
		return roleReplaced
	case p.at(i) != '"':
		return rolePlain
	}
	end, escaped, err := p.quoted(i)
	if err != nil {
		return rolePlain // walking it will tell
	}
	value := p.raw[i+1 : end-1]
	if p.inSecret && !p.safeAnnotation(value, escaped) || !p.inSecret && p.leaksSecret(value, escaped) {
		return roleDropped
	}
	return rolePlain
}

// maxSecretAnnotation is the length of the longest annotation that a Secret keeps, in
// bytes. Those that are kept hold names; manifests are longer.
const maxSecretAnnotation = 256

// safeAnnotation reports whether the value of an annotation whose name a Secret keeps may
// stay too. A name says what should stand there, not what does, and a user's pattern
// may fit more than was meant: tools leave copies of manifests in annotations, as
// JSON, as YAML, or compressed. So whatever could hold structure goes: brackets or a
// line break anywhere, the beginning of something encoded, or sheer length.
func (p *pass) safeAnnotation(value []byte, escaped bool) bool {
	if len(value) > 6*maxSecretAnnotation {
		return false
	}
	if escaped {
		value = p.plainText(value)
	}
	return len(value) <= maxSecretAnnotation && !bytes.ContainsAny(value, "{[\n\r") && !isCompressed(value) && !isEncodedJSON(value)
}

// leaksSecret reports whether an annotation of something else than a Secret must go
// because it holds, as text, a Secret's manifest, or what a rule redacts. What
// is compressed tells nothing, and goes.
func (p *pass) leaksSecret(value []byte, escaped bool) bool {
	rules := &p.redactor.rules
	hasRules := rules.anyDepth() || p.configMap && len(rules.configMapKeys) > 0
	if isCompressed(value) || hasRules && isEncodedJSON(value) {
		return true
	}
	if !escaped { // and so without a quote or a line break
		return bytes.Contains(value, []byte("kind: Secret"))
	}
	text, resolved := p.unescapeLayers(value)
	return !resolved || isCompressed(text) || hasRules && isEncodedJSON(text) ||
		bytes.Contains(text, []byte(`"Secret"`)) || bytes.Contains(text, []byte(`"SecretList"`)) ||
		bytes.Contains(text, []byte("kind: Secret")) || rules.mayMatchText(text, p.configMap)
}

// maxEscapeLayers is how many layers of JSON within JSON strings are looked through.
const maxEscapeLayers = 6

// unescapeLayers resolves the escapes of text layer by layer, as manifests hold
// annotations that hold manifests. It reports false where that did not come to
// an end.
func (p *pass) unescapeLayers(text []byte) ([]byte, bool) {
	for range maxEscapeLayers {
		if bytes.IndexByte(text, '\\') < 0 {
			return text, true
		}
		p.scratch = append(p.scratch[:0], text...)
		shorter := unescape(p.scratch[:0], p.scratch) // in place: it never gets longer
		if len(shorter) == len(text) {
			return shorter, true // backslashes that escape nothing
		}
		text = shorter
	}
	return text, bytes.IndexByte(text, '\\') < 0
}

// isCompressed reports whether text is the base64 of gzip, zstd or zip.
func isCompressed(text []byte) bool {
	return bytes.HasPrefix(text, []byte("H4sI")) || bytes.HasPrefix(text, []byte("KLUv/")) || bytes.HasPrefix(text, []byte("UEsD"))
}

// isEncodedJSON reports whether text is the base64 of a JSON object.
func isEncodedJSON(text []byte) bool { return bytes.HasPrefix(text, []byte("eyJ")) }
