package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/vedette-io/vedette/internal/client"
)

// accountAnnotation tells in a manifest from which account it is: the manifest
// itself does not know.
const accountAnnotation = "vedette.io/account"

// runManifests shows whole manifests: one that was asked for by name alone as
// itself, everything else as a List, as kubectl does.
func (g *getter) runManifests(ctx context.Context, resourceArgs []resourceArg) error {
	items := []any{}
	var errs []error
	for _, arg := range resourceArgs {
		found, err := g.manifests(ctx, arg)
		errs = append(errs, err)
		items = append(items, found...)
	}
	err := errors.Join(errs...)
	if len(items) == 0 && err != nil {
		return err
	}
	document := newList(items)
	if len(resourceArgs) == 1 && resourceArgs[0].name != "" && len(items) == 1 {
		document = items[0]
	}
	return errors.Join(g.printDocument(document), err)
}

func newList(items []any) any {
	return map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}, "items": items}
}

func (g *getter) manifests(ctx context.Context, arg resourceArg) ([]any, error) {
	query := g.query(arg)
	query.Manifests = true
	var found []any
	for {
		page, err := g.client.Objects(ctx, query)
		if err != nil {
			return found, err
		}
		g.warnStale(page.Freshness)
		for _, o := range page.Items {
			m, err := withAccountAnnotation(o)
			if err != nil {
				return found, err
			}
			found = append(found, m)
		}
		if query.Cursor = page.Cursor; query.Cursor == "" {
			return found, arg.notFoundError(len(found))
		}
	}
}

// decodeManifest reads a manifest whose numbers stay as they are written.
func decodeManifest(raw json.RawMessage) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var m map[string]any
	err := decoder.Decode(&m)
	return m, err
}

// withAccountAnnotation decodes a manifest and notes its account in it.
func withAccountAnnotation(o client.Object) (map[string]any, error) {
	m, err := decodeManifest(o.Manifest)
	if err != nil {
		return nil, fmt.Errorf("read the manifest of %s: %w", objectPath(o.Account, o.Kind, o.Namespace, o.Name), err)
	}
	metadata := ensureMap(m, "metadata")
	ensureMap(metadata, "annotations")[accountAnnotation] = o.Account
	return m, nil
}

// ensureMap returns an object within an object, and makes it where it is not.
func ensureMap(m map[string]any, name string) map[string]any {
	inner, ok := m[name].(map[string]any)
	if !ok {
		inner = map[string]any{}
		m[name] = inner
	}
	return inner
}

func (g *getter) printDocument(document any) error {
	text, err := encodeDocument(document, g.output)
	if err != nil {
		return err
	}
	g.out.line(text)
	return g.out.flush()
}

func encodeDocument(document any, format string) (string, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	if err := encoder.Encode(document); err != nil {
		return "", fmt.Errorf("write JSON: %w", err)
	}
	text := b.Bytes()
	if format == "yaml" {
		var err error
		if text, err = yaml.JSONToYAML(text); err != nil {
			return "", fmt.Errorf("write YAML: %w", err)
		}
	}
	return string(bytes.TrimRight(text, "\n")), nil
}
