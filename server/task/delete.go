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

// deleteOp deletes one object, or all objects of some kinds that match labels: deleteManifest.
// Without name and kinds it deletes nothing and succeeds, as in Clouddriver.
type deleteOp struct {
	commonFields
	targetFields
	Kinds          stringList               `json:"kinds"`
	LabelSelectors manifest.Selectors       `json:"labelSelectors"`
	Options        map[string]lenientString `json:"options"`
}

func (d *deleteOp) check(v *validation) {
	switch {
	case d.ManifestName != "":
		v.checkTarget(d.target())
	case len(d.Kinds) > 0:
		v.checkNamespace(d.namespace())
	}
}

func (d *deleteOp) run(ctx context.Context, t *opContext) (*Result, error) {
	args, err := d.args()
	if err != nil {
		return nil, err
	}
	t.reportf("Starting delete operation in account %s...", t.account())
	grace, invalid := d.grace()
	if invalid != "" {
		t.reportf("Ignoring the option gracePeriodSeconds, which is not a number: %.100q", invalid)
	}
	result := newResult()
	for _, a := range args {
		a.GraceSeconds = grace
		t.reportf("Looking up resource properties for %s...", displayKind(a.Kind))
		t.reportf("Calling delete operation for resource %s...", displayName(a.Target))
		names, err := t.deleteObjects(ctx, a)
		if err != nil {
			return nil, err
		}
		result.Names[a.Namespace] = union(result.Names[a.Namespace], names)
		t.reportf(" delete operation completed successfully for %s", displayName(a.Target))
	}
	t.reportf(" delete operation completed successfully for all applicable resources")
	return result, nil
}

// args returns the arguments of one deletion per object or kind.
func (d *deleteOp) args() ([]vedette.DeleteArgs, error) {
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

// propagation parses the options like Clouddriver: orphanDependents takes precedence over
// cascading.
func (d *deleteOp) propagation() string {
	if orphan, isSet := d.Options["orphanDependents"]; isSet && orphan != "" {
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

// grace returns the grace period in seconds, or the invalid text if it is not a number.
func (d *deleteOp) grace() (*int64, string) {
	value := string(d.Options["gracePeriodSeconds"])
	if value == "" {
		return nil, ""
	}
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 32)
	if err != nil || n < 0 {
		return nil, value
	}
	return &n, ""
}

// deleteObjects deletes objects, waits until they are deleted, and returns their full names.
func (t *opContext) deleteObjects(ctx context.Context, a vedette.DeleteArgs) ([]string, error) {
	timeout := t.tasks.cfg.DeleteTimeout
	if a.GraceSeconds != nil {
		timeout += time.Duration(*a.GraceSeconds) * time.Second
	}
	object := strings.TrimSpace(kubectlName(a.Target) + " " + a.LabelSelector)
	out, err := t.change(ctx, clusterChange{object: object, failurePrefix: fmt.Sprintf("Failed to delete %s from %s: ", object, a.Namespace),
		args: a, timeout: timeout})
	names := []string{}
	for _, key := range out.Keys {
		names = append(names, manifest.KindName(key.Kind)+" "+key.Name)
	}
	return names, err
}

// displayName returns the target of a deletion for the history: "deployment web", or only a
// kind.
func displayName(target vedette.Target) string {
	return strings.TrimSpace(displayKind(target.Kind) + " " + target.Name)
}

// kubectlName returns the target of an operation in kubectl's form: "deployment/web", or only
// a kind.
func kubectlName(target vedette.Target) string {
	return strings.TrimSuffix(displayKind(target.Kind)+"/"+target.Name, "/")
}

// union returns the names in both lists, in order and without duplicates.
func union(a, b []string) []string {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	all = slices.Compact(all)
	if all == nil {
		return []string{}
	}
	return all
}
