package kube

import (
	"context"
	"fmt"
	"net/url"

	"github.com/vedette-io/vedette"
)

// Controller returns the workload that controls a pod: the Deployment of its ReplicaSet, or else
// what controls the pod itself. Both results are empty for a pod without a controller.
func (c *Cluster) Controller(ctx context.Context, namespace, pod string) (kind, name string, err error) {
	owner, err := c.controllerOf(ctx, "/api/v1/namespaces/"+url.PathEscape(namespace)+"/pods/"+url.PathEscape(pod))
	if err != nil || owner.Kind != "ReplicaSet" {
		return owner.Kind, owner.Name, err
	}
	above, err := c.controllerOf(ctx, "/apis/apps/v1/namespaces/"+url.PathEscape(namespace)+"/replicasets/"+url.PathEscape(owner.Name))
	if err != nil || above.Kind == "" {
		return owner.Kind, owner.Name, err
	}
	return above.Kind, above.Name, nil
}

// ownerReference is the part of a metav1.OwnerReference that this package reads.
type ownerReference struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Controller bool   `json:"controller"`
}

// controllerOf returns the controller of the object at a path; a zero value if it has none.
func (c *Cluster) controllerOf(ctx context.Context, path string) (ownerReference, error) {
	resp, err := c.Get(ctx, c.Timeouts(), GetRequest{Path: path, Accept: AcceptMetadata})
	if err != nil {
		return ownerReference{}, fmt.Errorf("read %s: %w", path, c.Explain(err))
	}
	defer resp.Body.Close()
	var object struct {
		Metadata struct {
			OwnerReferences []ownerReference `json:"ownerReferences"`
		} `json:"metadata"`
	}
	if err := c.readDocument(ctx, resp.Body, &object); err != nil {
		return ownerReference{}, vedette.Errorf(vedette.Unavailable, "read %s: %w", path, err)
	}
	for _, owner := range object.Metadata.OwnerReferences {
		if owner.Controller {
			return owner, nil
		}
	}
	return ownerReference{}, nil
}
