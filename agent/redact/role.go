package redact

import "github.com/vedette-io/vedette"

// role is what a value is, according to its place in the object. It determines what happens
// to the value and to its members.
type role uint8

const (
	rolePlain role = iota // nothing special
	roleDropped
	roleReplaced       // by text
	roleReplacedBinary // by base64 text
	roleRoot
	roleRootKind
	roleRootAPIVersion
	roleRootItems
	roleMetadata
	roleHeaderText // a text of the metadata that goes into the header
	roleLabels
	roleLabel
	roleAnnotations // of the object itself
	roleAnnotation
	roleNestedAnnotations // of something inside the object
	roleNestedAnnotation
	roleOwners
	roleOwner
	roleOwnerText
	roleConfigMapData
	roleConfigMapBinaryData
	roleEnv
	roleEnvEntry
	roleRedactedEnvEntry // an entry whose value must be replaced
)

const (
	// Redacted replaces a value that a rule redacts.
	Redacted = vedette.Redacted
	// RedactedBinary replaces a value in the binaryData of a ConfigMap. It is base64, because
	// readers decode all values there.
	RedactedBinary = vedette.RedactedBinary
)

// roleOf returns the role of the member with that name, whose value is at i, in a container
// with a role.
func (p *redaction) roleOf(in role, name []byte, i int) role {
	switch in {
	case rolePlain:
		return p.anyDepthRole(name, i)
	case roleRoot:
		if p.inSecret {
			return p.secretRootRole(name, i)
		}
		return p.rootRole(name, i)
	case roleMetadata:
		return p.metadataRole(name, i)
	case roleLabels:
		return p.labelRole(i)
	case roleAnnotations:
		return p.textOnly(roleAnnotation, i)
	case roleNestedAnnotations:
		return p.textOnly(roleNestedAnnotation, i)
	case roleOwner:
		return p.ownerRole(name, i)
	case roleConfigMapData:
		return p.configMapRole(name, roleReplaced)
	case roleConfigMapBinaryData:
		return p.configMapRole(name, roleReplacedBinary)
	case roleRedactedEnvEntry:
		if string(name) == "value" {
			return roleReplaced
		}
		return rolePlain
	}
	return p.anyDepthRole(name, i)
}

// anyDepthRole returns the role of a member that has a meaning at any depth.
func (p *redaction) anyDepthRole(name []byte, i int) role {
	switch string(name) {
	case "data", "stringData":
		if p.inSecret {
			return roleDropped
		}
	case "annotations":
		if p.at(i) == '{' && (p.inSecret || len(p.redactor.rules.annotations) > 0) {
			return roleNestedAnnotations
		}
	case "env":
		if p.at(i) == '[' && len(p.redactor.rules.environment) > 0 {
			return roleEnv
		}
	}
	return rolePlain
}

func (p *redaction) rootRole(name []byte, i int) role {
	switch string(name) {
	case "kind":
		return roleRootKind
	case "apiVersion":
		return roleRootAPIVersion
	case "metadata":
		return roleMetadata
	case "items":
		return roleRootItems
	case "data":
		if p.configMap {
			return roleConfigMapData
		}
	case "binaryData":
		if p.configMap {
			return roleConfigMapBinaryData
		}
	}
	return p.anyDepthRole(name, i)
}

// secretRootRole is an allowlist, because a member that a later Kubernetes adds to Secrets
// must not pass before it was reviewed.
func (p *redaction) secretRootRole(name []byte, i int) role {
	nested := p.at(i) == '{' || p.at(i) == '['
	switch string(name) {
	case "metadata":
		if p.at(i) == '{' {
			return roleMetadata
		}
	case "kind":
		return roleRootKind
	case "apiVersion":
		return roleRootAPIVersion
	case "type", "immutable":
		if !nested {
			return rolePlain
		}
	}
	return roleDropped
}

// metadataRole is an allowlist only for Secrets. Other kinds keep the members that a newer
// API server adds.
func (p *redaction) metadataRole(name []byte, i int) role {
	switch string(name) {
	case "managedFields":
		return roleDropped
	case "labels":
		return p.containerOnly(roleLabels, i, '{')
	case "annotations":
		return p.containerOnly(roleAnnotations, i, '{')
	case "ownerReferences":
		return p.containerOnly(roleOwners, i, '[')
	case "finalizers":
		return p.containerOnly(rolePlain, i, '[')
	case "name", "namespace", "uid", "resourceVersion", "creationTimestamp":
		return p.textOnly(roleHeaderText, i)
	case "generateName", "selfLink", "deletionTimestamp", "generation", "deletionGracePeriodSeconds":
		return p.scalarOnly(rolePlain, i)
	}
	if p.inSecret {
		return roleDropped
	}
	return p.anyDepthRole(name, i)
}

func (p *redaction) ownerRole(name []byte, i int) role {
	switch string(name) {
	case "apiVersion", "kind", "name", "uid", "controller":
		return p.scalarOnly(roleOwnerText, i)
	case "blockOwnerDeletion":
		return p.scalarOnly(rolePlain, i)
	}
	if p.inSecret {
		return roleDropped
	}
	return p.anyDepthRole(name, i)
}

func (p *redaction) configMapRole(name []byte, matched role) role {
	if p.redactor.rules.configMapKeys.match(name) {
		return matched
	}
	return rolePlain
}

// containerOnly, scalarOnly and textOnly drop members of a Secret that do not have the type
// that they have in every valid Secret.
func (p *redaction) containerOnly(r role, i int, opener byte) role {
	switch {
	case p.at(i) == opener:
		return r
	case p.inSecret:
		return roleDropped
	}
	return rolePlain
}

func (p *redaction) scalarOnly(r role, i int) role {
	if c := p.at(i); p.inSecret && (c == '{' || c == '[') {
		return roleDropped
	}
	return r
}

func (p *redaction) textOnly(r role, i int) role {
	if p.inSecret && p.at(i) != '"' {
		return roleDropped
	}
	return r
}

func elementRole(in role) role {
	switch in {
	case roleOwners:
		return roleOwner
	case roleEnv:
		return roleEnvEntry
	}
	return rolePlain
}

func kindOf(apiVersion, name string) vedette.Kind {
	for i := range len(apiVersion) {
		if apiVersion[i] == '/' {
			return vedette.Kind{Group: apiVersion[:i], Name: name}
		}
	}
	return vedette.Kind{Name: name}
}
