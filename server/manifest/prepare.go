package manifest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// planner builds a Plan.
type planner struct {
	DeployDescription
	cluster   Cluster
	manifests []Manifest // in order, with namespaces set
	available []Artifact // artifacts for the next manifest
	plan      Plan
}

// prepare changes one manifest and adds it as a step. The order matters: the version must be
// found before anything is annotated, and the load balancer must be attached before labels are
// added.
func (p *planner) prepare(ctx context.Context, m Manifest) error {
	name := m.FullName()
	if err := p.checkVersionHistory(m); err != nil {
		return err
	}
	bound := p.bind(m)
	strategy := strategyOf(m)
	version, moniker, err := p.resolveVersion(ctx, m)
	if err != nil {
		return fmt.Errorf("find the version of %s: %w", name, err)
	}
	artifact := newArtifact(m, p.Account, version.Number)
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
	selected, err := p.LabelSelectors.Matches(m.Labels())
	p.addStep(Step{Manifest: m, Kind: m.Kind(), Namespace: m.Namespace(), Name: m.Name(), FullName: m.FullName(), Strategy: strategy,
		Selected: selected, IsNewVersion: version.Number >= 0 && !version.Exists, artifact: artifact, bound: bound})
	return err
}

// addStep adds a step, and its artifact for the manifests after it.
func (p *planner) addStep(s Step) {
	p.plan.Steps = append(p.plan.Steps, s)
	p.plan.Bound = appendNew(p.plan.Bound, s.bound...)
	p.plan.Created = appendNew(p.plan.Created, s.artifact)
	p.available = putArtifact(p.available, s.artifact)
}

// bind binds artifacts in a manifest and returns them. Unlike Clouddriver it reports nothing if there are no
// artifacts, because the history is stored again before each change.
func (p *planner) bind(m Manifest) []Artifact {
	bound := Bind(m.Kind(), m, Binding{p.available, p.Account, m.Namespace(), p.Rules.MatchNameOnly})
	if bound == nil {
		return nil
	}
	p.reportf("Binding artifacts in %s...", m.FullName())
	var references []string
	for _, a := range bound {
		references = append(references, a.Reference)
	}
	p.reportf("Bound artifacts: [%s]...", strings.Join(references, ", "))
	return bound
}

// checkVersionHistory rejects a history that is too short for two versions at the same time.
func (d DeployDescription) checkVersionHistory(m Manifest) error {
	history, isSet := maxVersionHistory(m)
	if !isSet || history >= 2 || d.Strategy != "RED_BLACK" && d.Strategy != "BLUE_GREEN" {
		return nil
	}
	return vedette.Errorf(vedette.Invalid,
		"The max version history specified in your manifest conflicts with the behavior of the Red/Black rollout strategy. "+
			"Please update your %s annotation to a value greater than or equal to 2.", annotMaxVersionHistory)
}

// resolveVersion returns the version of a manifest and its moniker. The version is negative if
// the manifest is not versioned.
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

// useSourceCapacity sets the replicas of a manifest to those of the live object or its latest
// version, if the manifest is annotated for it.
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

// configureTraffic annotates a workload with its load balancers, and attaches them if traffic
// is enabled.
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

// ErrNothingSelected means that label selectors match none of the manifests.
var ErrNothingSelected = errors.New("nothing selected")

// validatePlan checks the plan as a whole.
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
		return &vedette.Error{Kind: vedette.Invalid, Err: ErrNothingSelected,
			Message: fmt.Sprintf("nothing deployed to account %s with label selector(s) %s", p.Account, p.LabelSelectors)}
	}
	return nil
}
