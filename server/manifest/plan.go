package manifest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// Plan is what a deployment comes to.
type Plan struct {
	Steps   []Step     // in order
	Created []Artifact // what the manifests are, those not selected included; never nil
	Bound   []Artifact // what was put into them; never nil
	Order   string     // the full names in order, as they came: "namespace shop, replicaSet web"
}

// Step is one manifest on its way to the cluster.
type Step struct {
	Manifest  Manifest
	Kind      vedette.Kind
	Namespace string // empty for cluster-scoped kinds, and where "default" is meant
	Name      string // empty where the cluster makes one
	FullName  string // "replicaSet web-v003"
	Strategy  vedette.Strategy
	Selected  bool // false: the label selectors leave it out
}

// Plan makes the manifests into what is to reach the cluster. It refuses the
// deployment as a whole, before anything is done, as vedette.Invalid; other
// errors are the cluster's.
func (d DeployDescription) Plan(ctx context.Context, c Cluster) (Plan, error) {
	manifests, err := d.sortedManifests(ctx, c)
	if err != nil {
		return Plan{}, err
	}
	p := planner{DeployDescription: d, cluster: c, manifests: manifests, available: d.availableArtifacts(),
		plan: Plan{Created: []Artifact{}, Bound: []Artifact{}, Order: fullNames(manifests)}}
	d.reportf("Deploy order is: %s", p.plan.Order)
	for _, m := range manifests {
		if err := p.prepare(ctx, m.Clone()); err != nil {
			return Plan{}, err
		}
	}
	if err := p.validatePlan(); err != nil {
		return Plan{}, err
	}
	return p.plan, nil
}

// sortedManifests takes lists apart, sets namespaces, and puts the manifests in order.
func (d DeployDescription) sortedManifests(ctx context.Context, c Cluster) ([]Manifest, error) {
	d.reportf("Sorting manifests by priority...")
	all, err := ExpandLists(d.Manifests)
	if err != nil {
		return nil, err
	}
	priorities := map[vedette.Kind]int{}
	for i, m := range all {
		if err := m.validate(); err != nil {
			return nil, err
		}
		if priorities[m.Kind()], err = d.Rules.priority(m.Kind()); err != nil {
			return nil, err
		}
		if all[i], err = d.applyNamespace(ctx, c, m, all); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b Manifest) int { return cmp.Compare(priorities[a.Kind()], priorities[b.Kind()]) })
	return all, nil
}

func fullNames(manifests []Manifest) string {
	var names []string
	for _, m := range manifests {
		names = append(names, m.FullName())
	}
	return strings.Join(names, ", ")
}

// applyNamespace returns the manifest in the namespace that the deployment says.
func (d DeployDescription) applyNamespace(ctx context.Context, c Cluster, m Manifest, manifests []Manifest) (Manifest, error) {
	if strings.TrimSpace(d.NamespaceOverride) == "" {
		return m, nil
	}
	namespaced, err := c.Namespaced(ctx, m.APIVersion(), m.Kind().Name)
	if vedette.KindOf(err) == vedette.NotFound { // it may be defined by this very deployment
		namespaced, err = definedAsNamespaced(m.Kind(), manifests), nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask whether %s is namespaced: %w", KindName(m.Kind()), err)
	}
	if !namespaced {
		return m, nil
	}
	m = m.Clone()
	m.metadata()["namespace"] = d.NamespaceOverride
	return m, nil
}

// definedAsNamespaced reports whether a definition among the manifests makes a kind
// namespaced. A kind that nobody defines is taken for it.
func definedAsNamespaced(kind vedette.Kind, manifests []Manifest) bool {
	for _, m := range manifests {
		if KindName(m.Kind()) != "customResourceDefinition" {
			continue
		}
		spec, _ := m["spec"].(object)
		if stringField(spec, "group") == kind.Group && nested(spec, "names", "kind") == any(kind.Name) {
			return stringField(spec, "scope") != "Cluster"
		}
	}
	return true
}

// availableArtifacts returns what may be bound, the required before the optional; of two
// that stand for the same thing the first one.
func (d DeployDescription) availableArtifacts() []Artifact {
	if !d.BindArtifacts {
		return nil
	}
	var all []Artifact
	for _, a := range slices.Concat(d.Required, d.Optional) {
		if !slices.ContainsFunc(all, a.sameArtifact) {
			all = append(all, a)
		}
	}
	return all
}
