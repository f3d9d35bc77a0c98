//go:build unix

package controlplane

import (
	"context"
	"fmt"
	"time"
)

// Churn changes the Deployments and the ConfigMap of Workloads until ctx ends, perSecond times a
// second. It scales Deployments up and down, annotates them, changes the ConfigMap, and sometimes
// changes a Deployment's image, which replaces its Pods. It returns the number of changes, and an
// error if the API server rejects one. If the API server is slower than the rate, Churn is as slow
// as it.
//
// A change depends only on its number, so that two runs do the same.
func (p *Plane) Churn(ctx context.Context, w Workloads, perSecond float64) (int, error) {
	w = w.withDefaults()
	if perSecond <= 0 || perSecond > 10_000 {
		return 0, fmt.Errorf("churn: the rate must be more than 0 and at most 10,000 changes per second, got %v", perSecond)
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

// change returns the merge patch of one step. Each pass over the Deployments applies one kind of
// change to all of them.
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

// image changes the image tag of a Deployment's container. It contains all containers, because a
// merge patch replaces lists.
func (w Workloads) image(n, round int) Object {
	name := deploymentName(n % w.Deployments)
	pod := podSpec(name)
	pod["containers"].([]Object)[0]["image"] = fmt.Sprintf("registry.example.com/%s:1.%d.0", name, round)
	return Object{"spec": Object{"template": Object{"spec": pod}}}
}
