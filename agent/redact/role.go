package redact

import "github.com/vedette-io/vedette"

// role is what is known of a value from where it stands, and so what is done
// with it and with its members.
type role uint8

const (
	plain role = iota // nothing is known
	dropped
	replaced       // by text
	replacedBinary // by base64 text
	root
	rootKind
	rootVersion
	rootItems
	metadata
	headerText // a text of metadata that goes into the header
	labels
	label
	annotations // of the object itself
	annotation
	innerAnnotations // of something within the object
	innerAnnotation
	owners
	owner
	ownerText
	configData
	configBinary
	env
	envEntry
	envSecret // an entry whose value is to be replaced
)

const (
	// Redacted stands in place of a value that a rule redacts.
	Redacted = "[redacted]"
	// RedactedBinary is the same for a ConfigMap's binaryData: its base64, since
	// readers decode the values of all keys or fail.
	RedactedBinary = "W3JlZGFjdGVkXQ=="
)

// roleOf tells the role of the member with that name, and the value at i, of a
// container in a role.
func (p *pass) roleOf(in role, name []byte, i int) role {
	switch in {
	case plain:
		return p.plainRole(name, i)
	case root:
		if p.secret {
			return p.secretRootRole(name, i)
		}
		return p.rootRole(name, i)
	case metadata:
		return p.metadataRole(name, i)
	case labels:
		return p.labelRole(i)
	case annotations:
		return p.textOnly(annotation, i)
	case innerAnnotations:
		return p.textOnly(innerAnnotation, i)
	case owner:
		return p.ownerRole(name, i)
	case configData:
		return p.configRole(name, replaced)
	case configBinary:
		return p.configRole(name, replacedBinary)
	case envSecret:
		if string(name) == "value" {
			return replaced
		}
		return plain
	}
	return p.plainRole(name, i)
}

// plainRole is for members at any depth.
func (p *pass) plainRole(name []byte, i int) role {
	switch string(name) {
	case "data", "stringData":
		if p.secret {
			return dropped
		}
	case "annotations":
		if p.at(i) == '{' && (p.secret || len(p.redactor.rules.annotations) > 0) {
			return innerAnnotations
		}
	case "env":
		if p.at(i) == '[' && len(p.redactor.rules.environment) > 0 {
			return env
		}
	}
	return plain
}

func (p *pass) rootRole(name []byte, i int) role {
	switch string(name) {
	case "kind":
		return rootKind
	case "apiVersion":
		return rootVersion
	case "metadata":
		return metadata
	case "items":
		return rootItems
	case "data":
		if p.configMap {
			return configData
		}
	case "binaryData":
		if p.configMap {
			return configBinary
		}
	}
	return p.plainRole(name, i)
}

// secretRootRole is an allow-list, so that a member which Kubernetes may add to
// Secrets one day does not pass before somebody looked at it.
func (p *pass) secretRootRole(name []byte, i int) role {
	nested := p.at(i) == '{' || p.at(i) == '['
	switch string(name) {
	case "metadata":
		if p.at(i) == '{' {
			return metadata
		}
	case "kind":
		return rootKind
	case "apiVersion":
		return rootVersion
	case "type", "immutable":
		if !nested {
			return plain
		}
	}
	return dropped
}

// metadataRole is an allow-list for Secrets only: other kinds keep what an API
// server newer than this code may add.
func (p *pass) metadataRole(name []byte, i int) role {
	switch string(name) {
	case "managedFields":
		return dropped
	case "labels":
		return p.containerOnly(labels, i, '{')
	case "annotations":
		return p.containerOnly(annotations, i, '{')
	case "ownerReferences":
		return p.containerOnly(owners, i, '[')
	case "finalizers":
		return p.containerOnly(plain, i, '[')
	case "name", "namespace", "uid", "resourceVersion", "creationTimestamp":
		return p.textOnly(headerText, i)
	case "generateName", "selfLink", "deletionTimestamp", "generation", "deletionGracePeriodSeconds":
		return p.scalarOnly(plain, i)
	}
	if p.secret {
		return dropped
	}
	return p.plainRole(name, i)
}

func (p *pass) ownerRole(name []byte, i int) role {
	switch string(name) {
	case "apiVersion", "kind", "name", "uid", "controller":
		return p.scalarOnly(ownerText, i)
	case "blockOwnerDeletion":
		return p.scalarOnly(plain, i)
	}
	if p.secret {
		return dropped
	}
	return p.plainRole(name, i)
}

func (p *pass) configRole(name []byte, hit role) role {
	if p.redactor.rules.configMapKeys.match(name) {
		return hit
	}
	return plain
}

// containerOnly, scalarOnly and textOnly drop from a Secret what does not have
// the type that it has in every Secret.
func (p *pass) containerOnly(r role, i int, opener byte) role {
	switch {
	case p.at(i) == opener:
		return r
	case p.secret:
		return dropped
	}
	return plain
}

func (p *pass) scalarOnly(r role, i int) role {
	if c := p.at(i); p.secret && (c == '{' || c == '[') {
		return dropped
	}
	return r
}

func (p *pass) textOnly(r role, i int) role {
	if p.secret && p.at(i) != '"' {
		return dropped
	}
	return r
}

// elementRole is the role of an array's elements.
func elementRole(in role) role {
	switch in {
	case owners:
		return owner
	case env:
		return envEntry
	}
	return plain
}

// kindOf puts a kind together from an apiVersion, whose group stands before its
// slash, and a name.
func kindOf(apiVersion, name string) vedette.Kind {
	for i := range len(apiVersion) {
		if apiVersion[i] == '/' {
			return vedette.Kind{Group: apiVersion[:i], Name: name}
		}
	}
	return vedette.Kind{Name: name}
}
