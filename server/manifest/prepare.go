package manifest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// planner is a Plan in the making.
type planner struct {
	DeployDescription
	cluster   Cluster
	manifests []Manifest // as they came, in their namespaces and order
	available []Artifact // what may be bound into the next manifest
	plan      Plan
}

// prepare makes one manifest, which it changes, into a step. The order of what
// it does shows in the result: a version is asked for before anything is
// annotated, and a load balancer is attached before labels are written.
func (p *planner) prepare(ctx context.Context, m Manifest) error {
	name := m.FullName()
	if err := p.checkVersionHistory(m); err != nil {
		return err
	}
	p.bind(m)
	strategy := strategyOf(m)
	version, moniker, err := p.resolveVersion(ctx, m)
	if err != nil {
		return fmt.Errorf("find the version of %s: %w", name, err)
	}
	artifact := newArtifact(m, p.Account, version.Number)
	p.available = putArtifact(p.available, artifact)
	p.plan.Created = appendNew(p.plan.Created, artifact)

	p.reportf("Annotating manifest %s with artifact, relationships & moniker...", name)
	annotateArtifact(m, artifact)
	if err := p.useSourceCapacity(ctx, m, version); err != nil {
		return fmt.Errorf("take over the capacity for %s: %w", name, err)
	}
	if err := p.configureTraffic(ctx, m); err != nil {
		return err
	}
	annotateMoniker(m, moniker)
	p.addLabels(m, moniker)
	if !m.HasGenerateName() {
		m.metadata()["name"] = artifact.Reference
	}
	return p.addStep(m, strategy)
}

// bind puts artifacts into a manifest. Where there are none to be bound nothing is
// told, though Clouddriver does: a history is stored anew before each change.
func (p *planner) bind(m Manifest) {
	bound := Bind(m.Kind(), m, Binding{p.available, p.Account, m.Namespace(), p.Rules.MatchNameOnly})
	if bound == nil {
		return
	}
	p.reportf("Binding artifacts in %s...", m.FullName())
	p.plan.Bound = appendNew(p.plan.Bound, bound...)
	var references []string
	for _, a := range bound {
		references = append(references, a.Reference)
	}
	p.reportf("Bound artifacts: [%s]...", strings.Join(references, ", "))
}

func (p *planner) addStep(m Manifest, s vedette.Strategy) error {
	selected, err := p.LabelSelectors.Matches(m.Labels())
	p.plan.Steps = append(p.plan.Steps, Step{Manifest: m, Kind: m.Kind(), Namespace: m.Namespace(), Name: m.Name(), FullName: m.FullName(), Strategy: s, Selected: selected})
	return err
}

// checkVersionHistory refuses a history that is too short for two versions side by
// side.
func (d DeployDescription) checkVersionHistory(m Manifest) error {
	history, isSet := maxVersionHistory(m)
	if !isSet || history >= 2 || d.Strategy != "RED_BLACK" && d.Strategy != "BLUE_GREEN" {
		return nil
	}
	return vedette.Errorf(vedette.Invalid, "The max version history specified in your manifest conflicts with the behavior of the Red/Black rollout strategy. "+
		"Please update your %s annotation to a value greater than or equal to 2.", annotMaxVersionHistory)
}

// resolveVersion returns the version that a manifest becomes, with a negative number
// where it is not versioned, and the moniker that goes with it.
func (p *planner) resolveVersion(ctx context.Context, m Manifest) (vedette.Version, vedette.Moniker, error) {
	moniker := p.Moniker
	if moniker.Cluster == "" {
		moniker.Cluster = m.FullName()
	}
	if !p.isVersioned(m) {
		return vedette.Version{Number: -1}, moniker, nil
	}
	v, err := p.cluster.Version(ctx, m)
	moniker.Sequence = &v.Number
	return v, moniker, err
}

// useSourceCapacity gives a manifest that asks for it the replicas that the object,
// or its latest version, has now.
func (p *planner) useSourceCapacity(ctx context.Context, m Manifest, v vedette.Version) error {
	spec, ok := m["spec"].(object)
	if t, _ := lookupKindInfo(m.Kind()); !ok || !t.scalable || m.HasGenerateName() || !isTrue(m.Annotation(annotSourceCapacity)) {
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
	if replicas := nested(object(live), "spec", "replicas"); replicas != nil {
		spec["replicas"] = replicas
	}
	return err
}

// configureTraffic says which load balancers send traffic to a workload, and has them do
// so unless that is for later.
func (p *planner) configureTraffic(ctx context.Context, m Manifest) error {
	if t, _ := lookupKindInfo(m.Kind()); !t.receivesTraffic {
		return nil
	}
	if err := annotateTraffic(m, p.Services); err != nil {
		return err
	}
	if !p.EnableTraffic {
		return nil
	}
	return p.attachLoadBalancers(ctx, m)
}

// validatePlan says what is wrong with the whole.
func (p *planner) validatePlan() error {
	p.reportf("Checking if all requested artifacts were bound...")
	if p.BindArtifacts {
		if err := CheckBound(p.Required, p.plan.Bound); err != nil {
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
