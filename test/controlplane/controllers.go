//go:build unix

package controlplane

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"syscall"
)

// stages tell kwok what becomes of nodes and Pods.
//
//go:embed stages.yaml
var stages []byte

// disabledControllers are the controllers of kube-controller-manager that need a cloud, a kubelet
// or volumes, which do not exist here.
const disabledControllers = "-node-ipam-controller,-node-route-controller,-service-lb-controller,-cloud-node-lifecycle-controller," +
	"-persistentvolume-attach-detach-controller,-persistentvolume-expander-controller," +
	"-certificatesigningrequest-signing-controller,-bootstrap-signer-controller,-token-cleaner-controller"

// controllerManagerFlags run kube-controller-manager as the administrator, without leader election
// and its server, and with a rate limit that does not slow tests down.
func (p *Plane) controllerManagerFlags() []string {
	return append(p.controllerFlags(),
		"--controllers=*,"+disabledControllers,
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

// kwokFlags make kwok renew leases like a kubelet, so that nodes become NotReady some 40 seconds
// after kwok is gone, and serve as the kubelet of every node.
func (p *Plane) kwokFlags() []string {
	return []string{
		"--kubeconfig=" + p.Kubeconfig(),
		"--config=" + p.path("kwok.yaml"),
		"--node-ip=127.0.0.1", fmt.Sprintf("--node-port=%d", p.kubeletPort),
		fmt.Sprintf("--server-address=127.0.0.1:%d", p.kubeletPort),
		"--tls-cert-file=" + p.path("server.crt"),
		"--tls-private-key-file=" + p.path("server.key"),
		"--manage-all-nodes=true",
		"--node-lease-duration-seconds=40",
	}
}

// createNodes creates the missing nodes. kwok makes them Ready.
func (p *Plane) createNodes(ctx context.Context) error {
	for i := range p.options.Nodes {
		if err := p.Apply(ctx, fmt.Sprintf("/api/v1/nodes/node-%d", i), node(i)); err != nil {
			return fmt.Errorf("create node %d: %w", i, err)
		}
	}
	return nil
}

// StartControllers starts kube-controller-manager, kube-scheduler and kwok,
// after KillControllers, and waits until a Pod could be created and scheduled.
func (p *Plane) StartControllers(ctx context.Context) error {
	if !p.options.Controllers {
		return errors.New("start controllers: the plane was started without them")
	}
	// A kwok that was killed holds its nodes' leases for another 40 seconds.
	if err := p.Delete(ctx, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"); err != nil {
		return fmt.Errorf("delete the leases of nodes: %w", err)
	}
	for _, name := range controllerNames() {
		process := p.processes.byName(name)
		if process == nil {
			continue // there is no kwok if a kubelet is the node
		}
		if err := process.start(); err != nil {
			return err
		}
	}
	if err := p.waitUntil(ctx, "the default ServiceAccount exists", p.serviceAccountExists); err != nil {
		return err
	}
	return p.waitUntil(ctx, "the nodes are ready", p.nodesReady)
}

// KillControllers kills the three with SIGKILL. After that only clients change the cluster, and the
// API server its own Lease, so that the cluster can be compared with a copy. A plane without
// controllers is in that state from the start.
func (p *Plane) KillControllers() {
	for _, name := range controllerNames() {
		if process := p.processes.byName(name); process != nil {
			process.endWith(syscall.SIGKILL)
		}
	}
}

func controllerNames() []string { return []string{controllerManager, scheduler, kwok} }

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

// nodesReady fails unless each node is Ready and has lost the taint that it has until the
// controller manager has seen that it is Ready.
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
			return errors.New("a node is not ready or is tainted")
		}
	}
	return nil
}

// condition is an element of status.conditions.
type condition struct{ Type, Status string }

func isTrue(conditions []condition, kind string) bool {
	for _, c := range conditions {
		if c.Type == kind {
			return c.Status == "True"
		}
	}
	return false
}
