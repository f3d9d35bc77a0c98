package kube

import (
	"context"
	"fmt"
	"net/url"

	"github.com/vedette-io/vedette"
)

// Workload is what controls a pod; zero for nothing.
type Workload struct {
	Kind, Name string
	Replicas   int // 0 if unknown
}

// Controller returns the workload that controls a pod: the Deployment of its ReplicaSet, or else
// what controls the pod itself. Without the right to get Deployments, Replicas is that of the ReplicaSet, which differs during a rollout.
func (c *Cluster) Controller(ctx context.Context, namespace, pod string) (Workload, error) {
	core, apps := "/api/v1/namespaces/"+url.PathEscape(namespace), "/apis/apps/v1/namespaces/"+url.PathEscape(namespace)
	read, err := c.readWorkload(ctx, core+"/pods/"+url.PathEscape(pod), AcceptMetadata)
	owner := Workload{Kind: read.controller().Kind, Name: read.controller().Name}
	if err != nil || owner.Kind != "ReplicaSet" {
		return owner, err
	}
	replicaSet, err := c.readWorkload(ctx, apps+"/replicasets/"+url.PathEscape(owner.Name), AcceptJSON)
	owner.Replicas = replicaSet.replicas()
	above := replicaSet.controller()
	if err != nil || above.Kind == "" {
		return owner, err
	}
	owner.Kind, owner.Name = above.Kind, above.Name
	if above.Kind != "Deployment" {
		return owner, nil
	}
	if deployment, err := c.readWorkload(ctx, apps+"/deployments/"+url.PathEscape(owner.Name), AcceptJSON); err == nil {
		owner.Replicas = deployment.replicas()
	}
	return owner, nil
}

// workload is the part of a workload, or of a pod, that this package reads.
type workload struct {
	Metadata struct {
		OwnerReferences []ownerReference `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		Replicas int32 `json:"replicas"`
	} `json:"spec"`
}

// ownerReference is the part of a metav1.OwnerReference that this package reads.
type ownerReference struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Controller bool   `json:"controller"`
}

// controller returns what controls the workload; a zero value if nothing does.
func (w workload) controller() ownerReference {
	for _, owner := range w.Metadata.OwnerReferences {
		if owner.Controller {
			return owner
		}
	}
	return ownerReference{}
}

func (w workload) replicas() int { return int(max(0, w.Spec.Replicas)) }

func (c *Cluster) readWorkload(ctx context.Context, path, accept string) (w workload, err error) {
	err = c.getDocument(ctx, GetRequest{Path: path, Accept: accept}, &w)
	return w, err
}

// getDocument reads and decodes a document.
func (c *Cluster) getDocument(ctx context.Context, r GetRequest, into any) error {
	resp, err := c.Get(ctx, c.Timeouts(), r)
	if err != nil {
		return fmt.Errorf("read %s: %w", r.Path, c.Explain(err))
	}
	defer resp.Body.Close()
	if err := c.readDocument(ctx, resp.Body, into); err != nil {
		return vedette.Errorf(vedette.Unavailable, "read %s: %w", r.Path, err)
	}
	return nil
}
