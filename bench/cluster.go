package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/fleet/sample"
)

// cluster is a real API server, without controllers, and its objects.
type cluster struct {
	*controlplane.Plane
	sample  *sample.Cluster
	kinds   []vedette.Resource
	objects map[vedette.Kind]int
	client  *http.Client
}

// referenceObjects are the objects of the cluster for first syncs: 12,000 of 7 kinds.
func (b *bench) referenceObjects() map[vedette.Kind]int {
	objects := map[vedette.Kind]int{}
	for kind, n := range map[string]int{"Pod": 5000, "ReplicaSet.apps": 2500, "Deployment.apps": 1250, "Service": 1250,
		"ConfigMap": 1250, "Ingress.networking.k8s.io": 500, "Job.batch": 250} {
		objects[vedette.ParseKind(kind)] = b.scale(n)
	}
	return objects
}

// startCluster starts an API server and fills it over HTTP.
func (b *bench) startCluster(ctx context.Context, objects map[vedette.Kind]int) (*cluster, error) {
	if _, err := controlplane.Build(ctx, logWriter{}); err != nil {
		return nil, err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{APIServerFlags: []string{
		"--max-requests-inflight=0", "--max-mutating-requests-inflight=0", "--enable-priority-and-fairness=false"}})
	if err != nil {
		return nil, err
	}
	c := &cluster{Plane: plane, sample: sample.New(42), objects: objects}
	c.client, err = newTLSClient(plane.CA(), plane.ClientCert(), plane.ClientKey())
	if err != nil {
		return c, err
	}
	for _, r := range sample.Kinds() {
		if objects[r.Kind] > 0 {
			c.kinds = append(c.kinds, r)
		}
	}
	began, objectCount := time.Now(), 0
	for _, n := range objects {
		objectCount += n
	}
	err = c.fill(ctx)
	logf("filled a cluster with %d objects in %s", objectCount, seconds(time.Since(began)))
	return c, err
}

// logWriter logs what is written to it.
type logWriter struct{}

func (logWriter) Write(p []byte) (int, error) {
	logf("%s", strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

func (c *cluster) fill(ctx context.Context) error {
	for i := range sample.Namespaces {
		if err := c.create(ctx, sample.Kinds()[0], i); err != nil && !isConflict(err) {
			return err
		}
	}
	for _, r := range c.kinds {
		group, ctx := errgroup.WithContext(ctx)
		var next atomic.Int64
		for range 24 {
			group.Go(func() error {
				for i := int(next.Add(1)) - 1; i < c.objects[r.Kind]; i = int(next.Add(1)) - 1 {
					if err := c.create(ctx, r, i); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

func isConflict(err error) bool { return strings.Contains(err.Error(), "409") }

// create creates an object and, if it has a status, updates the status as a controller would.
func (c *cluster) create(ctx context.Context, r vedette.Resource, i int) error {
	object, status, err := c.sample.Creatable(r.Kind, i)
	if err != nil {
		return err
	}
	path := c.path(r, c.sample.Key(r.Kind, i).Namespace)
	if err := c.Create(ctx, path, object); err != nil {
		return err
	}
	if r.Kind.Name != "Pod" || status == nil {
		return nil
	}
	return c.Patch(ctx, path+"/"+c.sample.Key(r.Kind, i).Name+"/status", status)
}

func (c *cluster) path(r vedette.Resource, namespace string) string {
	path := "/apis/" + r.APIVersion()
	if r.Kind.Group == "" {
		path = "/api/v1"
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + r.Plural
}

// kindNames are the kinds as an agent's configuration names them.
func (c *cluster) kindNames() (names []string) {
	for _, r := range c.kinds {
		names = append(names, r.Kind.String())
	}
	return names
}

// count returns how many objects of the kinds exist, including those that the API server
// creates itself.
func (c *cluster) count(ctx context.Context) (n int, err error) {
	for _, r := range c.kinds {
		var list struct {
			Metadata struct{ RemainingItemCount int }
			Items    []json.RawMessage
		}
		if err := c.Get(ctx, c.path(r, "")+"?limit=1", &list); err != nil {
			return 0, err
		}
		n += len(list.Items) + list.Metadata.RemainingItemCount
	}
	return n, nil
}

// cpu returns the CPU time of the API server and its etcd.
func (c *cluster) cpu() (total time.Duration, err error) {
	for _, pid := range c.PIDs() {
		u, err := usageOf(pid)
		if err != nil {
			return 0, err
		}
		total += u.CPU
	}
	return total, nil
}

// change changes an annotation of an object and returns the new resourceVersion.
func (c *cluster) change(ctx context.Context, r vedette.Resource, i, n int) (vedette.Key, string, error) {
	key := c.sample.Key(r.Kind, i)
	url := c.URL + c.path(r, key.Namespace) + "/" + key.Name
	body := fmt.Sprintf(`{"metadata":{"annotations":{"changed-at":"%d"}}}`, n)
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, url, strings.NewReader(body))
	if err != nil {
		return key, "", err
	}
	req.Header.Set("Content-Type", "application/merge-patch+json")
	req.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	resp, err := c.client.Do(req)
	if err != nil {
		return key, "", err
	}
	defer resp.Body.Close()
	var o struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&o); err != nil {
		return key, "", err
	}
	if resp.StatusCode != http.StatusOK {
		return key, "", fmt.Errorf("change %s: %s", key, resp.Status)
	}
	return key, o.Metadata.ResourceVersion, nil
}
