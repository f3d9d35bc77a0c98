//go:build unix

package controlplane

import (
	"context"
	"fmt"
	"time"
)

// Churn keeps changing the Deployments and the ConfigMap of Workloads until the
// context ends, perSecond times a second: it scales up and down, marks
// Deployments with an annotation, changes the ConfigMap, and now and then rolls a
// Deployment's image, which replaces its Pods. It returns how many changes it
// made, and an error if one was refused. A rate that the API server can't keep up
// with becomes the rate that it can.
//
// Which change comes when depends on its number alone, so that two runs do the
// same.
func (p *Plane) Churn(ctx context.Context, w Workloads, perSecond float64) (int, error) {
	w = w.withDefaults()
	if perSecond <= 0 || perSecond > 10_000 {
		return 0, fmt.Errorf("churn: %v changes a second: want more than 0 and at most 10,000", perSecond)
	}
	ticker := time.NewTicker(time.Duration(float64(time.Second) / perSecond))
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return n, nil
		case <-ticker.C:
		}
		change := w.change(n)
		err := p.Patch(ctx, change.path, change.object)
		if ctx.Err() != nil {
			return n, nil
		}
		if err != nil {
			return n, fmt.Errorf("churn, change %d: %w", n, err)
		}
	}
}

// change is the merge patch of one step. Each run through the Deployments does
// one sort of change to all of them.
func (w Workloads) change(n int) item {
	path := "/apis/apps/v1/namespaces/" + w.Namespace + "/deployments/" + deploymentName(n%w.Deployments)
	round := n / w.Deployments
	switch round % 6 {
	case 0:
		return item{path, Object{"spec": Object{"replicas": w.Replicas + 1}}}
	case 3:
		return item{path, Object{"spec": Object{"replicas": w.Replicas}}}
	case 2:
		settings := "/api/v1/namespaces/" + w.Namespace + "/configmaps/settings"
		return item{settings, Object{"data": Object{"change": fmt.Sprint(n)}}}
	case 5:
		return item{path, w.image(n, round)}
	default:
		return item{path, Object{"metadata": Object{"annotations": Object{"demo.vedette.io/change": fmt.Sprint(n)}}}}
	}
}

// image changes the tag of a Deployment's container. The list of containers is
// given whole, since a merge patch replaces lists.
func (w Workloads) image(n, round int) Object {
	name := deploymentName(n % w.Deployments)
	pod := podSpec(name)
	pod["containers"].([]Object)[0]["image"] = fmt.Sprintf("registry.example.com/%s:1.%d.0", name, round)
	return Object{"spec": Object{"template": Object{"spec": pod}}}
}
