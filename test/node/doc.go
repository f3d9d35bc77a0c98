// Package node runs a real Kubernetes node beside a control plane of test/controlplane: kubelet, containerd with runc, kube-proxy,
// CoreDNS, and kube-router, which enforces NetworkPolicies. Pods are real containers with addresses of their own.
//
// A package's TestMain calls [Main], which runs the tests in namespaces of their own (network, mounts, processes, host name), so that
// nothing of the node is visible on the machine:
//
//	machine                 the tests' first process: builds programs, and waits
//	└ namespaces            an init, the tests, the control plane, the daemons of the node, and containers
//	  eth0 192.0.2.10       the address of the node, where API server and kubelet listen
//	  cni0 10.244.0.1/24    Pods
//	└ namespace "outside"   a machine that is not in the cluster: 192.0.2.1
//
// All of it ends with the first process, also after kill -9, because the kernel ends a namespace of processes with its init. Control
// groups and files have no owner; a process that outlives the first one removes them.
//
// It needs root and programs of Debian: runc, containernetworking-plugins, iptables, ipset, iproute2 and busybox. [Missing] says what a
// machine lacks.
package node
