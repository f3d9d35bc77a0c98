package operate

import (
	"context"
	"encoding/json"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// metricsAPIVersion is the API of the metrics server.
const metricsAPIVersion = "metrics.k8s.io/v1beta1"

// metrics returns the resource usage of the containers of one pod or of several.
func (r *run) metrics(ctx context.Context, a vedette.MetricsArgs) result {
	p, err := r.resolveTarget(ctx, vedette.Target{Kind: "PodMetrics", APIVersion: metricsAPIVersion, Namespace: a.Namespace, Name: a.Name})
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
	p.namespace = firstNonEmpty(p.namespace, r.defaultNamespace())
	raw, _, err := r.do(ctx, p, request{decoding: notDecoded})
	if err != nil {
		return errorResult(err)
	}
	obj, err := r.redactObject(p.Resource, raw)
	if err != nil {
		return errorResult(err)
	}
	return result{Outcome: vedette.Outcome{Objects: []json.RawMessage{obj.Body}}}
}
