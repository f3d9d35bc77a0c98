package operate

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// metricsAPIVersion is the API of the metrics server.
const metricsAPIVersion = "metrics.k8s.io/v1beta1"

// metrics returns the resource usage of the containers of one pod or of several.
func (r *run) metrics(ctx context.Context, a vedette.MetricsArgs) result {
	p, err := r.ResolveTarget(ctx, vedette.Target{Kind: "PodMetrics", APIVersion: metricsAPIVersion, Namespace: a.Namespace, Name: a.Name})
	switch vedette.KindOf(err) {
	case "":
	case vedette.NotFound:
		return errorResult(vedette.Errorf(vedette.NotFound, "the cluster serves no pod metrics: install the metrics server in it"))
	}
	if err != nil {
		return errorResult(err)
	}
	if a.Name == "" {
		return r.listResult(ctx, p, a.LabelSelector, "")
	}
	if err := manifest.CheckName(a.Name); err != nil {
		return errorResult(err)
	}
	p.Namespace = cmp.Or(p.Namespace, r.DefaultNamespace())
	raw, _, err := r.Do(ctx, p, request.Request{Decoding: request.NotDecoded})
	if err != nil {
		return errorResult(err)
	}
	obj, err := r.Redact(p.Resource, raw)
	if err != nil {
		return errorResult(err)
	}
	return result{Outcome: vedette.Outcome{Objects: []json.RawMessage{obj.Body}}}
}
