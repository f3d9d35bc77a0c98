package main

import (
	"fmt"
	"path"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1/util"
	"sigs.k8s.io/yaml"
)

// An object is one of Kubernetes, as JSON has it.
type object map[string]any

func (o object) kind() string { return o["kind"].(string) }

func (o object) name() string { return at(o, "metadata")["name"].(string) }

// id tells objects of one rendering apart.
func (o object) id() string {
	return fmt.Sprintf("%s/%s/%s", o["apiVersion"], o.kind(), o.name())
}

// at returns the map below a path of names, which must exist.
func at(o map[string]any, names ...string) map[string]any {
	for _, name := range names {
		o = o[name].(map[string]any)
	}
	return o
}

type chart struct{ *helmchart.Chart }

func loadChart(directory string) (chart, error) {
	loaded, err := loader.Load(directory)
	if err != nil {
		return chart{}, fmt.Errorf("load the chart: %w", err)
	}
	return chart{loaded}, nil
}

// kubernetes is the version for which all forms are rendered. The chart looks at it for servers that share a database only.
var kubernetes = common.KubeVersion{Version: "v1.30.0", Major: "1", Minor: "30"}

// render returns what the chart installs with some values, in the order in which Helm installs it, and without what is there only
// for Helm.
func (c chart) render(namespace string, values map[string]any) ([]object, error) {
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = kubernetes
	merged, err := util.ToRenderValues(c.Chart, values,
		common.ReleaseOptions{Name: "vedette", Namespace: namespace, Revision: 1, IsInstall: true}, capabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(c.Chart, merged)
	if err != nil {
		return nil, err
	}
	for name := range rendered {
		if path.Ext(name) != ".yaml" {
			delete(rendered, name) // notes
		}
	}
	_, sorted, err := release.SortManifests(rendered, nil, release.InstallOrder)
	if err != nil {
		return nil, err
	}
	var objects []object
	for _, manifest := range sorted {
		var o object
		if err := yaml.UnmarshalStrict([]byte(manifest.Content), &o); err != nil {
			return nil, fmt.Errorf("%s: %w", manifest.Name, err)
		}
		withoutHelm(o)
		objects = append(objects, o)
	}
	return objects, nil
}

// withoutHelm removes what says that Helm manages an object: other tools would leave such objects alone, or Helm would refuse to
// install over them. The checksum of the configuration goes too, because Kustomize has its own means, and manifests are edited.
func withoutHelm(content any) {
	switch content := content.(type) {
	case object:
		withoutHelm(map[string]any(content))
	case []any:
		for _, below := range content {
			withoutHelm(below)
		}
	case map[string]any:
		for name, below := range content {
			group, isMap := below.(map[string]any)
			if (name == "labels" || name == "annotations") && isMap {
				delete(group, "helm.sh/chart")
				delete(group, "helm.sh/resource-policy")
				delete(group, "app.kubernetes.io/managed-by")
				delete(group, "checksum/config")
				if len(group) == 0 {
					delete(content, name)
				}
				continue
			}
			if below == nil {
				delete(content, name)
				continue
			}
			withoutHelm(below)
		}
	}
}

// values returns nested values: values("agent.enabled", false).
func values(pairs ...any) map[string]any {
	all := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		group := all
		names := strings.Split(pairs[i].(string), ".")
		for _, name := range names[:len(names)-1] {
			if group[name] == nil {
				group[name] = map[string]any{}
			}
			group = group[name].(map[string]any)
		}
		group[names[len(names)-1]] = pairs[i+1]
	}
	return all
}
