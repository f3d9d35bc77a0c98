package task

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
)

// deployOp deploys manifests: deployManifest.
type deployOp struct {
	commonFields
	manifest.DeployDescription
}

func parseDeploy(raw json.RawMessage) (operation, error) {
	c, err := parse[commonFields](raw)
	if err != nil {
		return nil, err
	}
	d, err := manifest.ParseDeployDescription(raw)
	return &deployOp{*c, d}, err
}

func (d *deployOp) account() vedette.AccountName { return d.commonFields.account() }

// check checks the namespaces of the manifests like Clouddriver: if one namespace overrides
// them, it checks only that.
func (d *deployOp) check(v *validation) {
	all, err := manifest.ExpandLists(d.Manifests)
	if err == nil {
		err = manifest.CheckForm(all)
	}
	if err != nil {
		v.err = err
		return
	}
	if strings.TrimSpace(d.NamespaceOverride) != "" {
		v.checkNamespace(d.NamespaceOverride)
		return
	}
	for _, m := range all {
		if !v.checkNamespace(m.Namespace()) {
			return
		}
	}
}

func (d *deployOp) run(ctx context.Context, t *opContext) (*Result, error) {
	t.reportf("Beginning deployment of manifests in account %s ...", t.account())
	d.DeployDescription.Account = string(t.account())
	d.Rules = t.tasks.cfg.Rules.WithCustomKinds(t.op.custom)
	d.Report = func(line string) { t.reportf("%s", line) }
	plan, err := d.Plan(ctx, t)
	if errors.Is(err, manifest.ErrNothingSelected) { // the class that Clouddriver has
		return nil, illegalState(err.Error())
	}
	if err != nil {
		return nil, err
	}
	result := newResult()
	deployment := &deployment{t, d.DeployDescription, plan}
	if err := deployment.run(ctx, result); err != nil {
		return nil, err
	}
	result.Created = append(result.Created, deployment.plan.Created...)
	result.Bound = append(result.Bound, deployment.plan.Bound...)
	t.reportf("Deploy manifest task completed successfully for all manifests in account %s", t.account())
	return result, nil
}

// applyTimeout returns a longer timeout for recreate, because it includes a deletion.
func (t *opContext) applyTimeout(s vedette.Strategy) time.Duration {
	if s == vedette.StrategyRecreate {
		return t.tasks.cfg.DeleteTimeout
	}
	return t.tasks.cfg.Timeout
}

// deployFailurePrefix returns the beginning of an error message, as in Clouddriver.
func deployFailurePrefix(s vedette.Strategy) string {
	switch s {
	case vedette.StrategyReplace:
		return "Replace failed for manifest: "
	case vedette.StrategyCreateOnly:
		return "Create failed for manifest: "
	}
	return "Deploy failed for manifest: "
}
