package redact

import "bytes"

// secretHints are facts from an object's members that show whether it is a Secret.
type secretHints struct {
	secretKind bool // its kind is that of Secrets
	otherGroup bool // its apiVersion has another group, so it is a custom resource
}

// recordMember records the facts of one member. References to Secrets count as Secrets, which
// does no harm, because they have no data to cut.
func (s *secretHints) recordMember(p *redaction, name []byte, value int) {
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

// isSecretKind reports whether the content of a JSON string is a kind whose objects hold data
// of Secrets.
func isSecretKind(text []byte, escaped bool) bool {
	if escaped {
		if len(text) > 6*len("SecretList") {
			return false
		}
		text = unescape(make([]byte, 0, 64), text)
	}
	return string(text) == "Secret" || string(text) == "SecretList"
}

// rewalkAsSecret walks an object again that turned out to be a Secret after it was copied,
// because kind may come after data. It first zeroes the copy.
func (p *redaction) rewalkAsSecret(i int, n *node, in role, before checkpoint) (int, error) {
	p.rollback(before)
	p.extractor.clearBelow(n)
	inSecret, walkAll := p.inSecret, p.walkAll
	p.inSecret = true
	p.walkAll = true
	p.sawSecret = true
	if in == roleRoot {
		p.root, p.marked = rootFields{}, false
	}
	end, err := p.object(i, n, in)
	if in != roleRoot {
		p.inSecret, p.walkAll = inSecret, walkAll
	}
	return end, err
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// ContentAnnotation holds a salted digest of the manifest from which an object was made. The
// agent uses it to recognize the manifest of a Secret. It is removed from objects of every
// kind, because a value with few possibilities can be guessed from its digest.
const ContentAnnotation = "vedette.io/content"

// annotationRole returns the role of an annotation, whose value starts at i.
func (p *redaction) annotationRole(name []byte, i int) role {
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
		return rolePlain // walking it reports the error
	}
	value := p.raw[i+1 : end-1]
	if p.inSecret && !p.safeAnnotation(value, escaped) || !p.inSecret && p.leaksSecret(value, escaped) {
		return roleDropped
	}
	return rolePlain
}

// maxSecretAnnotation is the length of the longest annotation that a Secret keeps, in bytes.
// Names are shorter, and manifests are longer.
const maxSecretAnnotation = 256

// safeAnnotation reports whether the value of an annotation with an allowed name may be kept
// too. The name alone is not enough, because a user's pattern may match more than intended,
// and tools leave copies of manifests in annotations, as JSON, as YAML or compressed. So any
// value that could have structure is removed: brackets or a line break anywhere, the
// beginning of something encoded, or a long value.
func (p *redaction) safeAnnotation(value []byte, escaped bool) bool {
	if len(value) > 6*maxSecretAnnotation {
		return false
	}
	if escaped {
		value = p.plainText(value)
	}
	return len(value) <= maxSecretAnnotation && !bytes.ContainsAny(value, "{[\n\r") && !isCompressed(value) && !isEncodedJSON(value)
}

// leaksSecret reports whether an annotation of an object that is not a Secret must be removed,
// because its text holds the manifest of a Secret or a value that a rule redacts. Compressed
// values are removed too, because their content cannot be checked.
func (p *redaction) leaksSecret(value []byte, escaped bool) bool {
	rules := &p.redactor.rules
	hasRules := rules.anyDepth() || p.configMap && len(rules.configMapKeys) > 0
	if isCompressed(value) || hasRules && isEncodedJSON(value) {
		return true
	}
	if !escaped { // so it has neither a quote nor a line break
		return bytes.Contains(value, []byte("kind: Secret"))
	}
	text, resolved := p.unescapeLayers(value)
	return !resolved || isCompressed(text) || hasRules && isEncodedJSON(text) ||
		bytes.Contains(text, []byte(`"Secret"`)) || bytes.Contains(text, []byte(`"SecretList"`)) ||
		bytes.Contains(text, []byte("kind: Secret")) || rules.mayMatchText(text, p.configMap)
}

// maxEscapeLayers is how many layers of JSON inside JSON strings are checked.
const maxEscapeLayers = 6

// unescapeLayers resolves the escapes of text layer by layer, because manifests hold
// annotations that hold manifests. It returns false if there are too many layers.
func (p *redaction) unescapeLayers(text []byte) ([]byte, bool) {
	for range maxEscapeLayers {
		if bytes.IndexByte(text, '\\') < 0 {
			return text, true
		}
		p.scratch = append(p.scratch[:0], text...)
		shorter := unescape(p.scratch[:0], p.scratch) // in place, because the result is never longer
		if len(shorter) == len(text) {
			return shorter, true // the remaining backslashes are not escapes
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
