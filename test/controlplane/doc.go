// Package controlplane runs a real Kubernetes control plane for tests: etcd,
// kube-apiserver, and where asked for kube-controller-manager, kube-scheduler
// and kwok, each as a process of its own on 127.0.0.1.
//
// The binaries are built from Go modules, once, and kept in the user's cache
// directory (see Build). What they depend on stays in the nested modules
// kubernetes, etcd and kwok, which hold a go.mod and a go.sum and no code, so
// that nothing of it reaches the product. This package itself needs the standard
// library alone: it starts processes and speaks HTTPS and JSON to them.
//
// A test asks for a plane and gets one that is ready and goes away with it:
//
//	plane := controlplane.New(t, controlplane.Options{Controllers: true})
//	err := plane.Create(t.Context(), "/api/v1/namespaces/default/configmaps", body)
//
// Without Controllers there is an API server and its etcd: objects can be
// written, read and watched, and nobody acts on them. With Controllers a
// Deployment gets its ReplicaSet and its Pods, which kwok reports as running on
// nodes that do not exist, and Jobs complete.
//
// One plane per package is often enough: start it in TestMain with Start, and
// give each test a namespace. On two cores a plane is ready in 2.5 seconds, or 3.5
// with Controllers, and takes 310 or 520 MB, of which some 100 MB are program
// text that planes share.
//
// Pods annotated with vedette.io/fail fail, those with vedette.io/pending stay
// pending; see stages.yaml. All containers share one log, which AppendLog writes.
//
// From a shell the same is done by
//
//	go run ./test/controlplane/cmd/controlplane up --name a --workloads --churn 5
//
// which prints the kubeconfig and stays until Ctrl-C, and by the commands build
// and kubectl. The first build takes some ten minutes on two cores, which is as
// long as go test lets a package run by default: run build before tests. To use
// another version, change the require in the nested go.mod (for Kubernetes also
// the replace of each staging module) and run go mod tidy there.
//
// What holds for every plane:
//   - It has its own directory, certificates and port, so that many run side by
//     side. Its port stays reserved while its API server is down.
//   - Its processes die with the one that started it, also after kill -9 (on
//     Linux). A directory that was left behind then is removed by the next Start.
//   - Its etcd does not flush to disk and listens on a Unix socket only.
//
// The package needs Unix: Linux in full, others without the death signal.
package controlplane
