package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/vedette-io/vedette"
)

// scale sets the number of replicas, by the subresource that any kind may have.
func (o *Operator) scale(ctx context.Context, a vedette.ScaleArgs) result {
	if a.Replicas < 0 {
		return failed(vedette.Errorf(vedette.Invalid, "%d replicas can't be had", a.Replicas))
	}
	p, err := o.find(ctx, a.Target)
	if err != nil {
		return failed(err)
	}
	body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, a.Replicas)
	var scale []byte
	err = o.contend(ctx, func() (err error) {
		scale, _, err = o.do(ctx, p, call{method: http.MethodPatch, path: "/scale", contentType: typeMerge, body: body,
			query: url.Values{"fieldManager": {kubectlManager}}})
		return err
	})
	raw, status, again := o.readSince(ctx, p, versionOf(scale)) // the Scale tells nothing that a reader knows
	switch {
	case missing(err) && again == nil:
		return failed(vedette.Errorf(vedette.Invalid, "a %s can't be scaled", p.Kind))
	case err != nil:
		return failed(err)
	case again != nil:
		return failed(fmt.Errorf("%s is scaled, and can't be read: %w", p.key(), again))
	}
	if !isDry(ctx) {
		return o.told(p, raw, status)
	}
	raw, message, err := scaled(raw, a.Replicas)
	if err != nil {
		return failed(err)
	}
	r := o.told(p, raw, status)
	r.Message = message
	return r
}

// readSince reads an object as it is at a version, or newer. API servers tell that
// from their memory, without asking etcd. What fails of it is asked for as it is
// now: a watch cache may be behind, and some API servers have none.
func (o *Operator) readSince(ctx context.Context, p place, version string) ([]byte, int, error) {
	if version != "" {
		raw, status, err := o.do(ctx, p, call{query: url.Values{"resourceVersion": {version}}, once: true}) // the next try is the one below
		if err == nil {
			return raw, status, nil
		}
	}
	return o.do(ctx, p, call{})
}

// versionOf returns the resourceVersion of an object, empty where there is none.
func versionOf(raw []byte) string {
	var o struct {
		Metadata struct{ ResourceVersion string }
	}
	if json.Unmarshal(raw, &o) != nil {
		return ""
	}
	return o.Metadata.ResourceVersion
}
