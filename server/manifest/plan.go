package manifest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// Plan is the result of planning a deployment.
type Plan struct {
	Steps   []Step     // in order of execution
	Created []Artifact // artifacts of all manifests, also of those not selected; never nil
	Bound   []Artifact // artifacts that were bound; never nil
	Order   string     // full names in order of deployment: "namespace shop, replicaSet web"

	manifests []Manifest // in order of execution, with namespaces set
}

// Step is one manifest to apply.
type Step struct {
	Manifest  Manifest
	Kind      vedette.Kind
	Namespace string // empty for cluster-scoped kinds, and possibly for "default"
	Name      string // empty if the cluster generates it
	FullName  string // "replicaSet web-v003"
	Strategy  vedette.Strategy
	Selected  bool // false if the label selectors do not match
	// IsNewVersion is set if the object is a version that did not exist. It must be created and not
	// applied, because another deployment may have chosen the same version for another manifest.
	IsNewVersion bool

	artifact Artifact
	bound    []Artifact
}

// Series returns a key of the versions to which the object of a step belongs.
func (s Step) Series() string {
	return strings.Join([]string{s.Kind.String(), s.Namespace, s.artifact.Name}, "\x00")
}

// IsVersion reports whether the object of a step is a version with a number.
func (s Step) IsVersion(number int) bool {
	return valueOr(s.artifact.Version, "") == versionName(number)
}

// AsVersioned returns the manifest of a step under the name of its series. Cluster.Version finds out
// with it whether an object was made from exactly this step.
func (s Step) AsVersioned() Manifest {
	m := s.Manifest.Clone()
	m.metadata()["name"] = s.artifact.Name
	return m
}

// Plan returns the steps of a deployment. It rejects an invalid deployment as a whole with
// vedette.Invalid, before anything is executed. Other errors are those of the cluster.
func (d DeployDescription) Plan(ctx context.Context, c Cluster) (Plan, error) {
	manifests, err := d.sortedManifests(ctx, c)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{Order: fullNames(manifests), manifests: manifests}
	d.reportf("Deploy order is: %s", plan.Order)
	return d.Replan(ctx, c, plan, 0)
}

// Replan plans again from a step on, because the version of that step exists meanwhile. Later steps
// may refer to the version. Earlier steps stay as they are, because they were executed.
func (d DeployDescription) Replan(ctx context.Context, c Cluster, old Plan, from int) (Plan, error) {
	p := planner{DeployDescription: d, cluster: c, manifests: old.manifests, available: d.availableArtifacts(),
		plan: Plan{Created: []Artifact{}, Bound: []Artifact{}, Order: old.Order, manifests: old.manifests}}
	for i, m := range old.manifests {
		if i < from {
			p.addStep(old.Steps[i])
			continue
		}
		if err := p.prepare(ctx, m.Clone()); err != nil {
			return Plan{}, err
		}
	}
	if err := p.validatePlan(); err != nil {
		return Plan{}, err
	}
	return p.plan, nil
}

// sortedManifests expands lists, sets namespaces, and sorts the manifests.
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
		priorities[m.Kind()], err = d.Rules.priority(m.Kind())
		if err != nil {
			return nil, err
		}
		all[i], err = d.applyNamespace(ctx, c, m, all)
		if err != nil {
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

func (d DeployDescription) applyNamespace(ctx context.Context, c Cluster, m Manifest, manifests []Manifest) (Manifest, error) {
	if strings.TrimSpace(d.NamespaceOverride) == "" {
		return m, nil
	}
	namespaced, err := c.Namespaced(ctx, m.APIVersion(), m.Kind().Name)
	if vedette.KindOf(err) == vedette.NotFound { // this deployment may define the kind
		namespaced, err = definedAsNamespaced(m.Kind(), manifests), nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up whether %s is namespaced: %w", KindName(m.Kind()), err)
	}
	if !namespaced {
		return m, nil
	}
	m = m.Clone()
	m.metadata()["namespace"] = d.NamespaceOverride
	return m, nil
}

// definedAsNamespaced reports whether a kind is namespaced according to the definitions among
// the manifests. A kind without definition is assumed to be namespaced.
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

// availableArtifacts returns the artifacts that can be bound, required before optional. Of two
// equal ones, the first is used.
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
