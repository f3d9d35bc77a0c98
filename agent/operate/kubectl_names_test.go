//go:build linux

package operate_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate"
)

// TestNamesOfKindsMatchKubectl resolves all names of all kinds of an API server, with and without groups and versions, by
// vedette.FindKinds and by the packages that kubectl uses. Custom kinds have the names of each other and of Kubernetes.
func TestNamesOfKindsMatchKubectl(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	one, two := "one."+b.customGroup(), "two."+b.customGroup()
	// Those whose full name is a short name of Kubernetes' are the difference that FindKinds describes.
	differ := []string{"cm"}
	for group, kinds := range map[string][]object{
		one: {
			{"kind": "Twin", "plural": "twins", "shortNames": []any{"tw", "po"}},
			{"kind": "Cm", "plural": "cm", "singular": "cm"},
			{"kind": "Pod", "plural": "pods", "singular": "pod", "categories": []any{"all", "fleet"}},
		},
		"v1." + one: {{"kind": "Twin", "plural": "twins", "shortNames": []any{"tw"}}},
		"v9." + one: {{"kind": "Twin", "plural": "twins", "shortNames": []any{"tw"}}, {"kind": "Other", "plural": "others"}},
		two: {
			{"kind": "Twin", "plural": "twins", "shortNames": []any{"twi"}},
			{"kind": "Tw", "plural": "tw", "singular": "tw"},
			{"kind": "Whatsit", "plural": "whatsits", "shortNames": []any{"svc"}},
		},
	} {
		for _, names := range kinds {
			b.createCustomKindNamed(group, "v1", names, nil)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig())
	must(t, err)
	client, err := discovery.NewDiscoveryClientForConfig(config)
	must(t, err)
	cached := orderedDiscovery{memory.NewMemCacheClient(client)}
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	cluster, err := kube.Connect(kube.Access{KubeconfigFile: plane.Kubeconfig()}, kube.Options{})
	must(t, err)
	t.Cleanup(cluster.Close)
	var served []vedette.ServedKind
	must(t, plane.Await(t.Context(), "/apis", func(object) bool { // discovery is updated in the background
		cat, err := cluster.Discover(t.Context())
		served = cat.Served
		return err == nil && slices.ContainsFunc(served, func(k vedette.ServedKind) bool { return k.Kind.Group == two && k.Kind.Name == "Whatsit" }) &&
			slices.ContainsFunc(served, func(k vedette.ServedKind) bool { return k.Kind.Group == one && k.Kind.Name == "Pod" }) &&
			slices.ContainsFunc(served, func(k vedette.ServedKind) bool { return k.Kind.Group == "v9."+one && k.Kind.Name == "Other" })
	}))
	compared := 0
	for _, k := range served {
		if !vedette.IsNativeGroup(k.Kind.Group) && !strings.HasSuffix(k.Kind.Group, one) && k.Kind.Group != two {
			continue // of other tests
		}
		names := append([]string{k.Plural, strings.ToLower(k.Kind.Name), k.Kind.Name, strings.ToUpper(k.Plural)}, k.ShortNames...)
		if k.Singular != "" {
			names = append(names, k.Singular)
		}
		for _, name := range names {
			full := []string{name}
			if k.Kind.Group != "" {
				full = append(full, name+"."+k.Kind.Group, name+"."+k.Version+"."+k.Kind.Group, name+".v9."+k.Kind.Group)
			}
			for _, name := range full {
				want, compare := kubectlKind(mapper, name), !slices.Contains(differ, strings.ToLower(name))
				if got := ourKind(served, name); compare && got != want {
					t.Errorf("%s: got %q, kubectl means %q", name, got, want)
				}
				compared++
			}
		}
	}
	if compared < 300 {
		t.Errorf("compared %d names, want at least 300", compared)
	}
	if got := ourKind(served, "cm"); got != "ConfigMap /v1" {
		t.Errorf("cm: got %q, want the kind of Kubernetes", got)
	}
	for _, category := range []string{"all", "fleet", "api-extensions", "none"} {
		var ours, theirs []string
		for _, k := range served {
			if !k.IsListedIn(category) {
				continue
			}
			ours = append(ours, schema.GroupResource{Group: k.Kind.Group, Resource: k.Plural}.String())
		}
		resources, _ := restmapper.NewDiscoveryCategoryExpander(cached).Expand(category)
		for _, r := range resources {
			if !slices.Contains(theirs, r.String()) { // once for each version
				theirs = append(theirs, r.String())
			}
		}
		slices.Sort(ours)
		slices.Sort(theirs)
		if !slices.Equal(ours, theirs) || category == "all" && len(ours) < 10 {
			t.Errorf("category %s: got %v, kubectl means %v", category, ours, theirs)
		}
	}
}

// orderedDiscovery returns resources in the order of their groups, as kubectl's cache on disk does. The cache in memory has a
// random order, because it offers aggregated discovery.
type orderedDiscovery struct {
	discovery.CachedDiscoveryInterface
}

func (o orderedDiscovery) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return discovery.ServerGroupsAndResources(o)
}

// kubectlKind returns the kind that kubectl's rules give to a name, and its group and version: a resource with its version and
// group, or else a resource with its group.
func kubectlKind(mapper meta.RESTMapper, name string) string {
	withVersion, withGroup := schema.ParseResourceArg(name)
	if withVersion != nil {
		if kind, err := mapper.KindFor(*withVersion); err == nil {
			return kind.Kind + " " + kind.Group + "/" + kind.Version
		}
	}
	kind, err := mapper.KindFor(withGroup.WithVersion(""))
	if err != nil {
		return ""
	}
	return kind.Kind + " " + kind.Group + "/" + kind.Version
}

func ourKind(served []vedette.ServedKind, name string) string {
	match := vedette.FindKinds(served, name, func(k vedette.ServedKind) (vedette.Resource, []string) { return k.Resource, k.Versions })
	if len(match.Kinds) == 0 {
		return ""
	}
	k := match.Kinds[0]
	if match.Version != "" {
		k.Version = match.Version
	}
	return k.Kind.Name + " " + k.Kind.Group + "/" + k.Version
}
