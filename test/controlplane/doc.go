// Package controlplane runs a real Kubernetes control plane for tests: etcd, kube-apiserver, and
// optionally kube-controller-manager, kube-scheduler and kwok, each as a process on 127.0.0.1.
//
// The binaries are built from Go modules, once, and kept in the user's cache directory (see Build).
// Their dependencies stay in the nested modules kubernetes, etcd and kwok, which have a go.mod and
// a go.sum but no code, so that the product does not depend on them. This package itself needs only
// the standard library: it starts processes and talks to them in HTTPS and JSON.
//
// A test creates a plane that is ready to use and stops with the test:
//
//	plane := controlplane.New(t, controlplane.Options{Controllers: true})
//	err := plane.Create(t.Context(), "/api/v1/namespaces/default/configmaps", body)
//
// Without Controllers there is only an API server and its etcd: objects can be written, read and
// watched, but no controller acts on them. With Controllers, a Deployment gets its ReplicaSet and
// its Pods, which kwok reports as running on nodes that do not exist, and Jobs complete.
//
// One plane per package is often enough: start it in TestMain with Start, and give each test a
// namespace. On two cores a plane is ready in 2.5 seconds, or 3.5 with Controllers. It takes 310 or
// 520 MB, of which some 100 MB are program text that planes share.
//
// Pods annotated with vedette.io/fail fail, those with vedette.io/pending stay pending; see
// stages.yaml. All containers share one log, which AppendLog writes.
//
// In a shell,
//
//	go run ./test/controlplane/cmd/controlplane up --name a --workloads --churn 5
//
// starts a plane, prints its kubeconfig and runs until Ctrl-C. There are also the commands build
// and kubectl. The first build takes some ten minutes on two cores, which is the default timeout of
// go test, so run build before the tests. To use another version, change the require in the nested
// go.mod (for Kubernetes also the replace of each staging module) and run go mod tidy there.
//
// For every plane:
//   - It has its own directory, certificates and port, so that many planes run side by side. Its
//     port stays reserved while its API server is down.
//   - Its processes die with the process that started it, even after kill -9 (on Linux). The next
//     Start removes the directory that was left.
//   - Its etcd does not flush to disk and listens only on a Unix socket.
//
// The package needs Unix. Only Linux has the signal that ends processes with their parent.
package controlplane
