package operate

import (
	"context"
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
	err = o.contend(ctx, func() error {
		_, _, err := o.do(ctx, p, call{method: http.MethodPatch, path: "/scale", contentType: typeMerge, body: body,
			query: url.Values{"fieldManager": {"kubectl-scale"}}})
		return err
	})
	raw, status, again := o.do(ctx, p, call{}) // the Scale tells nothing that a reader knows
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
