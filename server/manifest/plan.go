package manifest

import (
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
func (d Deployment) Plan(ctx context.Context, c Cluster) (Plan, error) {
	manifests, err := d.input(ctx, c)
	if err != nil {
		return Plan{}, err
	}
	p := preparation{Deployment: d, cluster: c, given: manifests, available: d.available(), plan: Plan{Created: []Artifact{}, Bound: []Artifact{}}}
	for _, m := range manifests {
		if err := p.prepare(ctx, m.Clone()); err != nil {
			return Plan{}, err
		}
	}
	if err := p.refuse(); err != nil {
		return Plan{}, err
	}
	return p.plan, nil
}

// input takes lists apart, sets namespaces, and puts the manifests in order.
func (d Deployment) input(ctx context.Context, c Cluster) ([]Manifest, error) {
	all, err := Expand(d.Manifests)
	if err != nil {
		return nil, err
	}
	priorities := map[vedette.Kind]int{}
	for i, m := range all {
		if err := m.check(); err != nil {
			return nil, err
		}
		if priorities[m.Kind()], err = d.Rules.priority(m.Kind()); err != nil {
			return nil, err
		}
		if all[i], err = d.place(ctx, c, m, all); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b Manifest) int { return priorities[a.Kind()] - priorities[b.Kind()] })
	return all, nil
}

// place returns the manifest in the namespace that the deployment says.
func (d Deployment) place(ctx context.Context, c Cluster, m Manifest, given []Manifest) (Manifest, error) {
	if strings.TrimSpace(d.NamespaceOverride) == "" {
		return m, nil
	}
	namespaced, err := c.Namespaced(ctx, m.APIVersion(), m.Kind().Name)
	if vedette.KindOf(err) == vedette.NotFound { // it may be defined by this very deployment
		namespaced, err = defined(m.Kind(), given), nil
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

// defined reports whether a definition among the manifests makes a kind
// namespaced. A kind that nobody defines is taken for it.
func defined(kind vedette.Kind, given []Manifest) bool {
	for _, m := range given {
		if KindName(m.Kind()) != "customResourceDefinition" {
			continue
		}
		spec, _ := m["spec"].(object)
		if text(spec, "group") == kind.Group && dig(spec, "names", "kind") == any(kind.Name) {
			return text(spec, "scope") != "Cluster"
		}
	}
	return true
}

// available returns what may be bound, the required before the optional; of two
// that stand for the same thing the first one.
func (d Deployment) available() []Artifact {
	if !d.BindArtifacts {
		return nil
	}
	var all []Artifact
	for _, a := range slices.Concat(d.Required, d.Optional) {
		if !slices.ContainsFunc(all, a.sameThing) {
			all = append(all, a)
		}
	}
	return all
}

// preparation is a Plan in the making.
type preparation struct {
	Deployment
	cluster   Cluster
	given     []Manifest // as they came, in their namespaces and order
	available []Artifact // what may be bound into the next manifest
	plan      Plan
}

// prepare makes one manifest, which it changes, into a step. The order of what
// it does shows in the result: a version is asked for before anything is
// annotated, and a load balancer is attached before labels are written.
func (p *preparation) prepare(ctx context.Context, m Manifest) error {
	name := m.FullName()
	if p.plan.Order != "" {
		p.plan.Order += ", "
	}
	p.plan.Order += name
	if err := p.checkRollout(m); err != nil {
		return err
	}
	bound := Bind(m.Kind(), m, Binding{p.available, p.Account, m.Namespace(), p.Rules.MatchNameOnly})
	p.plan.Bound = add(p.plan.Bound, bound...)
	strategy := strategyOf(m)
	version, moniker, err := p.version(ctx, m)
	if err != nil {
		return fmt.Errorf("find the version of %s: %w", name, err)
	}
	artifact := made(m, p.Account, version.Number)
	p.available = put(p.available, artifact)
	p.plan.Created = add(p.plan.Created, artifact)

	annotateArtifact(m, artifact)
	if err := p.takeCapacity(ctx, m, version); err != nil {
		return fmt.Errorf("take over the capacity for %s: %w", name, err)
	}
	if err := p.route(ctx, m); err != nil {
		return err
	}
	annotateMoniker(m, moniker)
	p.label(m, moniker)
	if !m.Generated() {
		m.metadata()["name"] = artifact.Reference
	}
	return p.add(m, strategy)
}

func (p *preparation) add(m Manifest, s vedette.Strategy) error {
	selected, err := p.LabelSelectors.Matches(m.Labels())
	p.plan.Steps = append(p.plan.Steps, Step{Manifest: m, Kind: m.Kind(), Namespace: m.Namespace(), Name: m.Name(), FullName: m.FullName(), Strategy: s, Selected: selected})
	return err
}

// checkRollout refuses a history that is too short for two versions side by
// side.
func (d Deployment) checkRollout(m Manifest) error {
	history, said := maxVersionHistory(m)
	if !said || history >= 2 || d.Strategy != "RED_BLACK" && d.Strategy != "BLUE_GREEN" {
		return nil
	}
	return vedette.Errorf(vedette.Invalid, "The max version history specified in your manifest conflicts with the behavior of the Red/Black rollout strategy. "+
		"Please update your %s annotation to a value greater than or equal to 2.", annotMaxVersionHistory)
}

// version returns the version that a manifest becomes, with a negative number
// where it is not versioned, and the moniker that goes with it.
func (p *preparation) version(ctx context.Context, m Manifest) (vedette.Version, vedette.Moniker, error) {
	name := p.Moniker
	if name.Cluster == "" {
		name.Cluster = m.FullName()
	}
	if !p.versions(m) {
		return vedette.Version{Number: -1}, name, nil
	}
	v, err := p.cluster.Version(ctx, m)
	name.Sequence = &v.Number
	return v, name, err
}

// takeCapacity gives a manifest that asks for it the replicas that the object,
// or its latest version, has now.
func (p *preparation) takeCapacity(ctx context.Context, m Manifest, v vedette.Version) error {
	spec, ok := m["spec"].(object)
	if t, _ := traitOf(m.Kind()); !ok || !t.scales || m.Generated() || !isTrue(m.Annotation(annotSourceCapacity)) {
		return nil
	}
	name := m.Name()
	if v.Latest != "" {
		name = v.Latest
	}
	live, err := p.cluster.Get(ctx, m.APIVersion(), m.Kind().Name, m.Namespace(), name)
	if vedette.KindOf(err) == vedette.NotFound {
		return nil
	}
	if replicas := dig(object(live), "spec", "replicas"); replicas != nil {
		spec["replicas"] = replicas
	}
	return err
}

// route says which load balancers send traffic to a workload, and has them do
// so unless that is for later.
func (p *preparation) route(ctx context.Context, m Manifest) error {
	if t, _ := traitOf(m.Kind()); !t.traffic {
		return nil
	}
	if err := annotateTraffic(m, p.Services); err != nil {
		return err
	}
	if !p.EnableTraffic {
		return nil
	}
	return p.attach(ctx, p.cluster, m, p.given)
}

// refuse says what is wrong with the whole.
func (p *preparation) refuse() error {
	if p.BindArtifacts {
		if err := Unbound(p.Required, p.plan.Bound); err != nil {
			return err
		}
	}
	if len(p.LabelSelectors) == 0 {
		return nil
	}
	if slices.ContainsFunc(p.plan.Steps, func(s Step) bool { return s.Strategy == vedette.ReplaceObject }) {
		return vedette.Errorf(vedette.Invalid, "label selectors not supported with replace strategy, not deploying")
	}
	if !p.AllowNothingSelected && !slices.ContainsFunc(p.plan.Steps, func(s Step) bool { return s.Selected }) {
		return vedette.Errorf(vedette.Invalid, "nothing deployed to account %s with label selector(s) %s", p.Account, p.LabelSelectors)
	}
	return nil
}
