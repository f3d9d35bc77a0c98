//go:build linux

package operate_test

import (
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate"
)

// inContext makes the operator use a kubeconfig whose context has the namespace.
func (b *testbed) inContext() {
	b.Helper()
	config, err := clientcmd.LoadFromFile(plane.Kubeconfig())
	must(b, err)
	config.Contexts[config.CurrentContext].Namespace = b.namespace
	contents, err := clientcmd.Write(*config)
	must(b, err)
	c, err := kube.Connect(kube.Access{KubeconfigContents: contents}, kube.Options{})
	must(b, err)
	b.Cleanup(c.Close)
	b.op, err = operate.New(c, operate.Config{})
	must(b, err)
}

// TestNamespaceOfTheContext deploys versions of a manifest without a namespace, as kubectl
// does, into the namespace of the kubeconfig's context.
func TestNamespaceOfTheContext(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.inContext()
	version := func(o object) vedette.Version {
		t.Helper()
		namespace := b.namespace
		b.namespace = ""
		defer func() { b.namespace = namespace }()
		return b.computeVersion(o)
	}
	deployed := b.versionedManifest(configMap("c", object{"a": "1"}), 0)
	deployed["metadata"].(object)["annotations"].(object)["artifact.spinnaker.io/location"] = ""
	b.mustExecute(vedette.ApplyArgs{Manifest: encode(b, deployed)})
	if got, want := b.kubectl("get", "configmaps", "c-v000", "-o", "name"), "configmap/c-v000\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := version(configMap("c", object{"a": "1"})), (vedette.Version{Exists: true, Latest: "c-v000"}); got != want {
		t.Errorf("the same data: got %+v, want %+v", got, want)
	}
	if got, want := version(configMap("c", object{"a": "2"})), (vedette.Version{Number: 1, Latest: "c-v000"}); got != want {
		t.Errorf("other data: got %+v, want %+v", got, want)
	}
	target := vedette.Target{Kind: "configmap", Name: "c-v000"}
	b.mustExecute(vedette.GetArgs{Target: target})
	b.mustExecute(vedette.DeleteArgs{Target: target})
	if got := b.kubectl("get", "configmaps", "c-v000", "-o", "name", "--ignore-not-found"); got != "" {
		t.Errorf("after the deletion: got %q", got)
	}
}
