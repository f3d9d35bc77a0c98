package task

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
)

// deploy brings manifests to a cluster: deployManifest.
type deploy struct {
	common
	manifest.Deployment
}

func parseDeploy(raw json.RawMessage) (operation, error) {
	c, err := parse[common](raw)
	if err != nil {
		return nil, err
	}
	d, err := manifest.ReadDeployment(raw)
	return &deploy{*c, d}, err
}

func (d *deploy) account() vedette.AccountName { return d.common.account() }

// check judges the namespaces that manifests come to as Clouddriver does: where
// one overrides theirs, it alone.
func (d *deploy) check(v *validation) {
	all, err := manifest.Expand(d.Manifests)
	if err != nil {
		v.err = err
		return
	}
	if strings.TrimSpace(d.NamespaceOverride) != "" {
		v.namespace(d.NamespaceOverride)
		return
	}
	for _, m := range all {
		if !v.namespace(m.Namespace()) {
			return
		}
	}
}

func (d *deploy) run(ctx context.Context, t *turn) (*Result, error) {
	t.say("Beginning deployment of manifests in account %s ...", t.account())
	d.Deployment.Account = string(t.account())
	d.Rules = t.tasks.cfg.Rules.WithCustom(t.work.custom)
	d.Tell = func(line string) { t.say("%s", line) }
	plan, err := d.Plan(ctx, t)
	if err != nil {
		return nil, err
	}
	result := newResult()
	for _, step := range plan.Steps {
		if !step.Selected {
			t.say("Manifest %s is not selected by the labels %s", step.FullName, d.LabelSelectors)
			continue
		}
		made, err := t.apply(ctx, step)
		if err != nil {
			return nil, err
		}
		result.add(made)
	}
	result.Created = append(result.Created, plan.Created...)
	result.Bound = append(result.Bound, plan.Bound...)
	t.say("Deploy manifest task completed successfully for all manifests in account %s", t.account())
	return result, nil
}

// apply brings one manifest to the cluster and returns what is there then, as
// far as it may be told.
func (t *turn) apply(ctx context.Context, step manifest.Step) (manifest.Manifest, error) {
	t.say("Submitting manifest %s to kubernetes master...", step.FullName)
	out, err := t.change(ctx, act{object: step.FullName, failed: deployed(step.Strategy) + step.FullName + ". Error: ",
		args: vedette.ApplyArgs{Manifest: step.Manifest.JSON(), Strategy: step.Strategy}, within: t.applyTimeout(step.Strategy)})
	if err != nil {
		return nil, err
	}
	made := step.Manifest
	if len(out.Objects) > 0 {
		made = nil
		if err := made.UnmarshalJSON(out.Objects[0]); err != nil {
			return nil, err
		}
	}
	t.say("Deploy manifest task completed successfully for manifest %s in account %s", made.FullName(), t.account())
	return manifest.WithoutSecrets(made), nil
}

// applyTimeout leaves a recreation the time of a deletion.
func (t *turn) applyTimeout(s vedette.Strategy) time.Duration {
	if s == vedette.StrategyRecreate {
		return t.tasks.cfg.DeleteTimeout
	}
	return t.tasks.cfg.Timeout
}

// deployed begins the text of a failure as Clouddriver does.
func deployed(s vedette.Strategy) string {
	switch s {
	case vedette.StrategyReplace:
		return "Replace failed for manifest: "
	case vedette.StrategyCreateOnly:
		return "Create failed for manifest: "
	}
	return "Deploy failed for manifest: "
}
