package manifests

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/store/read"
)

// containerMetrics is the resource usage of one container, formatted like kubectl top.
type containerMetrics struct {
	ContainerName string            `json:"containerName"`
	Metrics       map[string]string `json:"metrics"`
}

// addEventsAndMetrics adds events to a manifest and, for pods, metrics. Both are read
// concurrently and with a short timeout, because a manifest without them is better than no
// manifest. A warning says if the events could not be read: no events at all look like a quiet object.
// Metrics are missing without one, because many clusters have none.
func (a *api) addEventsAndMetrics(ctx context.Context, scope web.Scope, row *read.Row, metrics bool, view *manifestView) {
	if a.Dispatch == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, extrasTimeout)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		var err error
		if view.Events, err = a.events(ctx, scope, row); err != nil {
			view.Warnings = []string{fmt.Sprintf("account %s: read the events of %s: %v: no events are shown", scope.Account, row.Key, err)}
		}
	})
	if metrics && row.Kind == (vedette.Kind{Name: "Pod"}) {
		wg.Go(func() { view.Metrics = a.metrics(ctx, scope, row) })
	}
	wg.Wait()
}

// events returns the Events of an object, the latest last; not nil.
func (a *api) events(ctx context.Context, scope web.Scope, row *read.Row) ([]json.RawMessage, error) {
	out, err := a.doOperation(ctx, scope,
		vedette.EventsArgs{Target: vedette.Target{Kind: row.Kind.String(), APIVersion: row.APIVersion, Namespace: row.Namespace, Name: row.Name}})
	if err != nil {
		a.Log.DebugContext(ctx, "showing manifest without events", "account", scope.Account, "object", row.Key, "error", err)
		return []json.RawMessage{}, err
	}
	slices.SortStableFunc(out.Objects, func(x, y json.RawMessage) int { return eventTime(x).Compare(eventTime(y)) })
	events := make([]json.RawMessage, len(out.Objects))
	for i, event := range out.Objects {
		events[i] = web.AsGson(event)
	}
	return events, nil
}

// eventTime returns when an Event was last seen.
func eventTime(event json.RawMessage) time.Time {
	var e struct {
		LastTimestamp  *time.Time `json:"lastTimestamp"`
		FirstTimestamp *time.Time `json:"firstTimestamp"`
		EventTime      *time.Time `json:"eventTime"`
		Metadata       struct {
			CreationTimestamp *time.Time `json:"creationTimestamp"`
		} `json:"metadata"`
	}
	if err := exactjson.Unmarshal(event, &e, exactjson.Limits{}); err != nil {
		return time.Time{}
	}
	for _, timestamp := range []*time.Time{e.LastTimestamp, e.FirstTimestamp, e.EventTime, e.Metadata.CreationTimestamp} {
		if timestamp != nil {
			return *timestamp
		}
	}
	return time.Time{}
}

func (a *api) metrics(ctx context.Context, scope web.Scope, row *read.Row) []containerMetrics {
	out, err := a.doOperation(ctx, scope, vedette.MetricsArgs{Namespace: row.Namespace, Name: row.Name})
	if err == nil && len(out.Objects) != 1 {
		err = fmt.Errorf("got %d objects, want 1", len(out.Objects))
	}
	var pod struct {
		Containers []struct {
			Name  string `json:"name"`
			Usage struct {
				CPU    resource.Quantity `json:"cpu"`
				Memory resource.Quantity `json:"memory"`
			} `json:"usage"`
		} `json:"containers"`
	}
	if err == nil {
		err = exactjson.Unmarshal(out.Objects[0], &pod, exactjson.Limits{})
	}
	if err != nil {
		a.Log.DebugContext(ctx, "showing pod without metrics", "account", scope.Account, "object", row.Key, "error", err)
		return []containerMetrics{}
	}
	list := make([]containerMetrics, len(pod.Containers))
	for i, c := range pod.Containers {
		list[i] = containerMetrics{c.Name, map[string]string{
			"CPU(cores)":    fmt.Sprintf("%dm", c.Usage.CPU.MilliValue()),
			"MEMORY(bytes)": fmt.Sprintf("%dMi", c.Usage.Memory.Value()>>20),
		}}
	}
	slices.SortStableFunc(list, func(x, y containerMetrics) int { return strings.Compare(x.ContainerName, y.ContainerName) })
	return list
}
