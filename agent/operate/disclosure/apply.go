package disclosure

import (
	"context"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// CheckApply rejects a server-side apply that would make a redacted value readable: an apply may
// change or remove the kind of an embedded Secret whose data other managers own. Who owns what decides
// what becomes of it, so the API server is asked by a dry run. Objects with redacted values are few.
// Kinds of Kubernetes itself are not checked: they contain no objects that are merged with a manifest,
// and a name is the key of an environment variable there.
func CheckApply(ctx context.Context, s *request.Sender, p request.Path, req *request.Request) error {
	if vedette.IsNativeGroup(p.Kind.Group) {
		return nil
	}
	live, _, err := s.Do(ctx, p, request.Request{})
	if request.IsNotFound(err) {
		return nil // the object will have what the manifest has
	}
	if err != nil {
		return err
	}
	hidden, err := redactedValues(ctx, s, p, live)
	if err != nil || len(hidden) == 0 {
		return err
	}
	desired, err := manifest.ParseObject(req.Body, "manifest")
	if err != nil {
		return err
	}
	for text := range textsOf(desired) {
		delete(hidden, text)
	}
	if err := bindToVersion(p, desired, request.ResourceVersionOf(live)); err != nil {
		return err
	}
	req.Body = manifest.Manifest{Object: desired}.Encode()
	return checkPreview(ctx, s, p, *req, hidden)
}

// checkPreview sends a server-side apply as a dry run, and returns an error if one of the hidden values
// is readable in the result.
func checkPreview(ctx context.Context, s *request.Sender, p request.Path, req request.Request, hidden map[string]bool) error {
	preview, _, err := s.AsDryRun().Do(ctx, p, req)
	if err != nil {
		return err
	}
	obj, err := s.Redact(p.Resource, preview)
	if err != nil {
		return err
	}
	readable, err := decodeTree(ctx, s, p, obj.Body)
	if err != nil {
		return err
	}
	for text := range textsOf(readable) {
		if hidden[text] {
			return vedette.Errorf(vedette.Invalid, "the manifest is rejected, because it would reveal a redacted value of %s: it changes or removes the kind "+
				"or the apiVersion of a Secret inside, or the name of a variable, but not the values: keep them as they are, or write the values too", p.Key())
		}
	}
	return nil
}

// redactedValues returns the values in an object that are not readable anywhere in it. The redaction of
// annotations depends on themselves only, so they are not among them.
func redactedValues(ctx context.Context, s *request.Sender, p request.Path, raw []byte) (map[string]bool, error) {
	obj, err := s.Redact(p.Resource, raw)
	if err != nil {
		return nil, err
	}
	full, err := decodeTree(ctx, s, p, raw)
	if err != nil {
		return nil, err
	}
	readable, err := decodeTree(ctx, s, p, obj.Body)
	if err != nil {
		return nil, err
	}
	hidden := textsOf(full)
	for text := range textsOf(readable) {
		delete(hidden, text)
	}
	return hidden, nil
}

// textsOf returns the strings and numbers in a tree, without the names of members.
func textsOf(tree any) map[string]bool {
	texts := map[string]bool{}
	addTexts(texts, tree)
	return texts
}

func addTexts(texts map[string]bool, tree any) {
	switch t := tree.(type) {
	case nil, bool:
	case object:
		for _, value := range t {
			addTexts(texts, value)
		}
	case []any:
		for _, element := range t {
			addTexts(texts, element)
		}
	default:
		texts[fmt.Sprint(t)] = true
	}
}

// decodeTree decodes an object, without the metadata that the API server writes.
func decodeTree(ctx context.Context, s *request.Sender, p request.Path, raw []byte) (object, error) {
	if err := s.UseMemory(ctx, request.DecodedSize(raw, request.DecodedAsTree)); err != nil {
		return nil, err
	}
	tree, err := manifest.ParseObject(raw, "object")
	if err != nil {
		return nil, request.InvalidResponse(p, err)
	}
	delete(tree, "metadata")
	return tree, nil
}
