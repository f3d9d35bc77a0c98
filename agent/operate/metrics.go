package operate

import (
	"context"
	"encoding/json"

	"github.com/vedette-io/vedette"
)

// metricsVersion is what the metrics server serves.
const metricsVersion = "metrics.k8s.io/v1beta1"

// metrics tells what the containers of one pod, or of many, use.
func (o *Operator) metrics(ctx context.Context, a vedette.MetricsArgs) result {
	p, err := o.findAll(ctx, vedette.Target{Kind: "PodMetrics", APIVersion: metricsVersion, Namespace: a.Namespace, Name: a.Name})
	switch vedette.KindOf(err) {
	case "":
	case vedette.NotFound:
		return failed(vedette.Errorf(vedette.NotFound, "the cluster serves no metrics of pods: install its metrics server"))
	}
	if err != nil {
		return failed(err)
	}
	if a.Name == "" {
		items, err := o.all(ctx, p, a.LabelSelector, "")
		if err != nil {
			return failed(err)
		}
		return o.toldAll(p, items)
	}
	if err := named(a.Name); err != nil {
		return failed(err)
	}
	p.namespace = firstOf(p.namespace, "default")
	raw, _, err := o.do(ctx, p, call{})
	if err != nil {
		return failed(err)
	}
	return o.toldAll(p, []json.RawMessage{raw})
}
