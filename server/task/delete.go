package task

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
)

// remove deletes one object, or all of some kinds that labels fit:
// deleteManifest.
type remove struct {
	common
	targeted
	Kinds          texts              `json:"kinds"`
	LabelSelectors manifest.Selectors `json:"labelSelectors"`
	Options        map[string]text    `json:"options"`
}

func (d *remove) check(v *validation) {
	switch {
	case d.ManifestName != "":
		v.target(d.target())
	case len(d.Kinds) == 0:
		v.reject("manifestName & kinds", "empty")
	default:
		v.namespace(d.namespace())
	}
}

func (d *remove) run(ctx context.Context, t *turn) (*Result, error) {
	args, err := d.args()
	if err != nil {
		return nil, err
	}
	t.say("Starting delete operation in account %s...", t.account())
	grace, wrong := d.grace()
	if wrong != "" {
		t.say("Ignoring the option gracePeriodSeconds, which is no number: %.100q", wrong)
	}
	result := newResult()
	for _, a := range args {
		a.GraceSeconds = grace
		t.say("Looking up resource properties for %s...", writtenKind(a.Kind))
		t.say("Calling delete operation for resource %s...", named(a.Target))
		names, err := t.delete(ctx, a)
		if err != nil {
			return nil, err
		}
		result.Names[a.Namespace] = union(result.Names[a.Namespace], names)
		t.say(" delete operation completed successfully for %s", named(a.Target))
	}
	t.say(" delete operation completed successfully for all applicable resources")
	return result, nil
}

// args returns one deletion for each object or kind.
func (d *remove) args() ([]vedette.DeleteArgs, error) {
	base := vedette.DeleteArgs{Propagation: d.propagation(), MissingOK: true, LabelSelector: d.LabelSelectors.String()}
	if d.ManifestName != "" {
		target, err := d.target()
		base.Target, base.LabelSelector = target.args(), ""
		return []vedette.DeleteArgs{base}, err
	}
	var all []vedette.DeleteArgs
	for _, kind := range d.Kinds {
		base.Target = vedette.Target{Kind: kind, Namespace: d.namespace()}
		all = append(all, base)
	}
	return all, nil
}

// propagation reads the options as Clouddriver does: orphanDependents goes
// before cascading.
func (d *remove) propagation() string {
	if orphan, said := d.Options["orphanDependents"]; said && orphan != "" {
		if strings.EqualFold(string(orphan), "true") {
			return "orphan"
		}
		return "background"
	}
	switch cascading := d.Options["cascading"]; strings.ToLower(string(cascading)) {
	case "false":
		return "orphan"
	case "", "true":
		return "background"
	default:
		return string(cascading)
	}
}

// grace returns the seconds that pods have, and what was said where that is no
// number.
func (d *remove) grace() (*int64, string) {
	said := string(d.Options["gracePeriodSeconds"])
	if said == "" {
		return nil, ""
	}
	n, err := strconv.ParseInt(strings.TrimSpace(said), 10, 32)
	if err != nil || n < 0 {
		return nil, said
	}
	return &n, ""
}

// delete deletes, waits until all is gone, and returns the full names of what
// was there.
func (t *turn) delete(ctx context.Context, a vedette.DeleteArgs) ([]string, error) {
	within := t.tasks.cfg.DeleteTimeout
	if a.GraceSeconds != nil {
		within += time.Duration(*a.GraceSeconds) * time.Second
	}
	what := strings.TrimSpace(resource(a.Target) + " " + a.LabelSelector)
	out, err := t.change(ctx, act{object: what, failed: fmt.Sprintf("Failed to delete %s from %s: ", what, a.Namespace), args: a, within: within})
	names := []string{}
	for _, key := range out.Keys {
		names = append(names, manifest.KindName(key.Kind)+" "+key.Name)
	}
	return names, err
}

// named writes what a deletion is for: "deployment web", or a kind alone.
func named(target vedette.Target) string {
	return strings.TrimSpace(writtenKind(target.Kind) + " " + target.Name)
}

// resource writes what an operation is for as kubectl takes it: "deployment/web",
// or a kind alone.
func resource(target vedette.Target) string {
	return strings.TrimSuffix(writtenKind(target.Kind)+"/"+target.Name, "/")
}

// union returns the names of both lists, in order, each once.
func union(a, b []string) []string {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	if all = slices.Compact(all); all == nil {
		return []string{}
	}
	return all
}
