//go:build unix

package controlplane

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
)

// stages tell kwok what becomes of nodes and Pods.
//
//go:embed stages.yaml
var stages []byte

// unused are controllers of kube-controller-manager that would wait for a cloud,
// a kubelet or volumes, none of which exist here.
const unused = "-node-ipam-controller,-node-route-controller,-service-lb-controller,-cloud-node-lifecycle-controller," +
	"-persistentvolume-attach-detach-controller,-persistentvolume-expander-controller," +
	"-certificatesigningrequest-signing-controller,-bootstrap-signer-controller,-token-cleaner-controller"

// controllerManagerFlags run it as the administrator, without the election and
// the server that a lone one does not need, and at a rate that does not slow
// tests down.
func (p *Plane) controllerManagerFlags() []string {
	return append(p.controllerFlags(),
		"--controllers=*,"+unused,
		"--kube-api-qps=500", "--kube-api-burst=1000",
		"--root-ca-file="+p.CA(),
		"--service-account-private-key-file="+p.path("tokens.key"),
		"--profiling=false",
	)
}

func (p *Plane) schedulerFlags() []string {
	return append(p.controllerFlags(), "--kube-api-qps=500", "--kube-api-burst=1000", "--profiling=false")
}

func (p *Plane) controllerFlags() []string {
	return []string{"--kubeconfig=" + p.Kubeconfig(), "--leader-elect=false", "--secure-port=0"}
}

// kwokFlags let it renew leases, as a kubelet does, so that nodes become NotReady
// some 40 seconds after kwok is gone.
func (p *Plane) kwokFlags() []string {
	return []string{
		"--kubeconfig=" + p.Kubeconfig(),
		"--config=" + p.path("stages.yaml"),
		"--manage-all-nodes=true",
		"--node-lease-duration-seconds=40",
	}
}

// startControllers starts what acts on objects, and waits until a Pod could be
// created and scheduled.
func (p *Plane) startControllers(ctx context.Context) error {
	for _, name := range []string{controllerManager, scheduler, kwok} {
		if err := p.processes.named(name).start(); err != nil {
			return err
		}
	}
	for i := range p.options.Nodes {
		if err := p.Create(ctx, "/api/v1/nodes", node(i)); err != nil {
			return fmt.Errorf("create node %d: %w", i, err)
		}
	}
	if err := p.until(ctx, "the default ServiceAccount exists", p.serviceAccountExists); err != nil {
		return err
	}
	return p.until(ctx, "the nodes are ready", p.nodesReady)
}

func node(i int) Object {
	name := fmt.Sprintf("node-%d", i)
	return Object{
		"apiVersion": "v1", "kind": "Node",
		"metadata": Object{
			"name":   name,
			"labels": Object{"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "type": "kwok"},
		},
	}
}

func (p *Plane) serviceAccountExists(ctx context.Context) error {
	return p.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil)
}

// nodesReady wants each node Ready and free of the taint that a node has until
// the controller manager has seen that.
func (p *Plane) nodesReady(ctx context.Context) error {
	var nodes struct {
		Items []struct {
			Spec   struct{ Taints []any }
			Status struct{ Conditions []condition }
		}
	}
	if err := p.Get(ctx, "/api/v1/nodes", &nodes); err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if !isTrue(node.Status.Conditions, "Ready") || len(node.Spec.Taints) > 0 {
			return errors.New("a node is not ready or tainted")
		}
	}
	return nil
}

// condition is what objects list in status.conditions.
type condition struct{ Type, Status string }

func isTrue(conditions []condition, kind string) bool {
	for _, c := range conditions {
		if c.Type == kind {
			return c.Status == "True"
		}
	}
	return false
}
