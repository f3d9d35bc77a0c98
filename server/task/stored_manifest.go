package task

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// artifactStore is Spinnaker's artifact store. If Orca uses one (artifact-store.type: s3), it moves
// manifests there, and sends references to them.
type artifactStore interface {
	// Stored returns what is stored, in base64. mayRead decides about the application that the
	// store has for it.
	Stored(ctx context.Context, application, hash string, mayRead func(context.Context, string) error) (string, error)
}

const (
	storedManifestType = "remote/map/base64"
	storeScheme        = "ref://"
	// maxStoredBytes bounds the stored manifests of a request, which count nothing in its body.
	maxStoredBytes = 64 << 20
)

// storedManifest takes the place of a manifest that is in the artifact store.
type storedManifest struct {
	Type      string `json:"type"`
	Reference string `json:"reference"`
}

// expander replaces references by manifests.
type expander struct {
	store   artifactStore // nil if there is none
	mayRead func(context.Context, string) error
	memory  *memory // of the task
	bytes   int
}

// expand returns a request whose manifests are all in the request. Clouddriver expands the same
// members. The index is that of the request in its task.
func (e *expander) expand(ctx context.Context, index int, r Request) (Request, error) {
	if !bytes.Contains(r.Description, []byte(storedManifestType)) {
		return r, nil
	}
	var members map[string]json.RawMessage
	if exactjson.Unmarshal(r.Description, &members, bodyLimits) != nil || members == nil {
		return r, nil // the operation's own parser says what is wrong
	}
	for _, name := range []string{"manifest", "manifests", "patchBody"} {
		expanded, err := e.expandMember(ctx, name, members[name])
		if err != nil {
			return r, err
		}
		if expanded != nil {
			members[name] = expanded
		}
	}
	description, err := json.Marshal(members)
	if err != nil {
		return r, fmt.Errorf("encode the description of %s: %w", r.Name, err)
	}
	r.Description = description
	return r, e.memory.growDescription(ctx, index, r)
}

// expandMember returns a member without references, or nil if it has none.
func (e *expander) expandMember(ctx context.Context, name string, raw json.RawMessage) (json.RawMessage, error) {
	var elements []json.RawMessage
	if exactjson.Unmarshal(raw, &elements, bodyLimits) != nil {
		return e.expandOne(ctx, name, raw)
	}
	for i, element := range elements {
		expanded, err := e.expandOne(ctx, fmt.Sprintf("%s[%d]", name, i), element)
		if err != nil {
			return nil, err
		}
		if expanded != nil {
			elements[i] = expanded
		}
	}
	return json.Marshal(elements)
}

// expandOne returns the manifest that a reference stands for, or nil if raw is not a reference.
func (e *expander) expandOne(ctx context.Context, where string, raw json.RawMessage) (json.RawMessage, error) {
	var stored storedManifest
	if exactjson.Unmarshal(raw, &stored, bodyLimits) != nil || stored.Type != storedManifestType {
		return nil, nil
	}
	if e.store == nil {
		return nil, vedette.Errorf(vedette.Invalid, "%s is not in the request, but in an artifact store (%.300s), which this server does not read: "+
			"remove artifact-store from the configuration of Orca", where, stored.Reference)
	}
	application, hash, ok := strings.Cut(strings.TrimPrefix(stored.Reference, storeScheme), "/")
	if !ok || !strings.HasPrefix(stored.Reference, storeScheme) {
		return nil, vedette.Errorf(vedette.Invalid, "the reference of %s must be of the form %sAPPLICATION/HASH, got %.300q", where, storeScheme,
			stored.Reference)
	}
	text, err := e.store.Stored(ctx, application, hash, e.mayRead)
	if err != nil {
		return nil, storeError(where, err)
	}
	return e.decode(where, text)
}

// decode returns a stored manifest. Errors do not quote it, because it can be a Secret.
func (e *expander) decode(where, text string) (json.RawMessage, error) {
	e.bytes += len(text)
	if e.bytes > maxStoredBytes {
		return nil, vedette.Errorf(vedette.Invalid, "the manifests in the artifact store are larger than %d MiB", maxStoredBytes>>20)
	}
	manifest, err := base64.StdEncoding.DecodeString(text)
	if err != nil || !json.Valid(manifest) {
		return nil, vedette.Errorf(vedette.Invalid, "%s in the artifact store is not a manifest: it is not JSON in base64", where)
	}
	return manifest, nil
}

// storeError says which manifest could not be read. A missing one is an error of the request,
// because 404 would mean that there is no such operation.
func storeError(where string, err error) error {
	kind := vedette.KindOf(err)
	switch kind {
	case vedette.NotFound:
		kind = vedette.Invalid
	case "":
		kind = vedette.Unavailable
	}
	return vedette.Errorf(kind, "read %s from the artifact store: %w", where, err)
}
