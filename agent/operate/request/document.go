package request

import (
	"context"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// Redact returns an object as it may leave the agent.
func (s *Sender) Redact(resource vedette.Resource, raw []byte) (vedette.Object, error) {
	redactor := s.Redactor()
	redacted := redactor.Object
	switch s.Operation.Args.(type) {
	case vedette.GetArgs, vedette.MetricsArgs:
		redacted = redactor.ReadObject
	}
	obj, _, err := redacted(nil, resource, raw)
	if err != nil {
		return obj, fmt.Errorf("redact a %s: %w", resource.Kind, err)
	}
	return obj, nil
}

// ResourceVersionOf returns the resourceVersion of an object, empty for none.
func ResourceVersionOf(raw []byte) string {
	var o struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if manifest.Decode(raw, &o) != nil {
		return ""
	}
	return o.Metadata.ResourceVersion
}

// LiveVersion returns the resourceVersion of an object, empty if it can't be read. That is not an
// error: the outcome just does not say whether the object changed.
func (s *Sender) LiveVersion(ctx context.Context, p Path) string {
	req := Request{Accept: p.MetadataAcceptHeader()}
	if s.recordsChanges() {
		req.Accept = "" // the record needs the whole object, which is then not read again
	}
	raw, _, err := s.Do(ctx, p, req)
	if err != nil {
		return ""
	}
	return ResourceVersionOf(raw)
}

// InvalidResponse returns the error for a response about an object that cannot be decoded.
func InvalidResponse(p Path, err error) error {
	return vedette.Errorf(vedette.Unavailable, "the cluster's response for %s is invalid: %w", p.Key(), err)
}
