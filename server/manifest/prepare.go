package manifest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

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
	if err := p.checkRollout(m); err != nil {
		return err
	}
	p.bind(m)
	strategy := strategyOf(m)
	version, moniker, err := p.version(ctx, m)
	if err != nil {
		return fmt.Errorf("find the version of %s: %w", name, err)
	}
	artifact := made(m, p.Account, version.Number)
	p.available = put(p.available, artifact)
	p.plan.Created = add(p.plan.Created, artifact)

	p.tell("Annotating manifest %s with artifact, relationships & moniker...", name)
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

// bind puts artifacts into a manifest. Where there are none to be bound nothing is
// told, though Clouddriver does: a history is stored anew before each change.
func (p *preparation) bind(m Manifest) {
	bound := Bind(m.Kind(), m, Binding{p.available, p.Account, m.Namespace(), p.Rules.MatchNameOnly})
	if bound == nil {
		return
	}
	p.tell("Binding artifacts in %s...", m.FullName())
	p.plan.Bound = add(p.plan.Bound, bound...)
	var references []string
	for _, a := range bound {
		references = append(references, a.Reference)
	}
	p.tell("Bound artifacts: [%s]...", strings.Join(references, ", "))
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
	return p.attach(ctx, m)
}

// refuse says what is wrong with the whole.
func (p *preparation) refuse() error {
	p.tell("Checking if all requested artifacts were bound...")
	if p.BindArtifacts {
		if err := Unbound(p.Required, p.plan.Bound); err != nil {
			return err
		}
	}
	if len(p.LabelSelectors) == 0 {
		return nil
	}
	if slices.ContainsFunc(p.plan.Steps, func(s Step) bool { return s.Strategy == vedette.StrategyReplace }) {
		return vedette.Errorf(vedette.Invalid, "label selectors not supported with replace strategy, not deploying")
	}
	if !p.AllowNothingSelected && !slices.ContainsFunc(p.plan.Steps, func(s Step) bool { return s.Selected }) {
		return vedette.Errorf(vedette.Invalid, "nothing deployed to account %s with label selector(s) %s", p.Account, p.LabelSelectors)
	}
	return nil
}
