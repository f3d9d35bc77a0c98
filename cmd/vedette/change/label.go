package change

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

// pairs are the changes to a map of texts in the metadata of objects: its labels or its annotations.
type pairs struct {
	set    map[string]string
	remove []string
}

// parsePairs parses key=value and key-.
func parsePairs(args []string, noun string) (pairs, error) {
	p := pairs{set: map[string]string{}}
	for _, arg := range args {
		key, value, isSet := strings.Cut(arg, "=")
		switch {
		case !utf8.ValidString(arg):
			return p, vedette.Errorf(vedette.Invalid, "the %s %q is not valid UTF-8", noun, arg)
		case isSet && key != "":
			p.set[key] = value
		case !isSet && len(arg) > 1 && strings.HasSuffix(arg, "-"):
			p.remove = append(p.remove, strings.TrimSuffix(arg, "-"))
		default:
			return p, vedette.Errorf(vedette.Invalid, "invalid %s %q: use KEY=VALUE, or KEY- to remove it", noun, arg)
		}
	}
	for _, key := range p.remove {
		if _, both := p.set[key]; both {
			return p, vedette.Errorf(vedette.Invalid, "can not both modify and remove the %s %s in the same command", noun, key)
		}
	}
	return p, nil
}

// validateLabels checks values as API servers do, because each account would reject them for the same reason.
func (p pairs) validateLabels() error {
	for _, key := range slices.Sorted(maps.Keys(p.set)) {
		if errs := validation.IsQualifiedName(key); len(errs) > 0 {
			return vedette.Errorf(vedette.Invalid, "invalid label key %q: %s", key, strings.Join(errs, "; "))
		}
		if errs := validation.IsValidLabelValue(p.set[key]); len(errs) > 0 {
			return vedette.Errorf(vedette.Invalid, "invalid label value %q: %s", key+"="+p.set[key], strings.Join(errs, "; "))
		}
	}
	return nil
}

// validateAnnotations rejects the annotation that is never stored.
func (p pairs) validateAnnotations() error {
	if _, set := p.set[vedette.AccountAnnotation]; set {
		return vedette.Errorf(vedette.Invalid, "the annotation %s names the account of a printed object, and is not stored: choose another key", vedette.AccountAnnotation)
	}
	return nil
}

// pairChange is what pairs change in one object.
type pairChange struct {
	patch                    map[string]any // of labels or annotations
	added, removed           int
	missing, taken, takenOld []string // keys to remove that are not there; keys with another value, and these values
}

// against returns what the pairs change in an object that has current.
func (p pairs) against(current map[string]string, mayReplace func(key string) bool) pairChange {
	c := pairChange{patch: map[string]any{}}
	for _, key := range slices.Sorted(maps.Keys(p.set)) {
		value, exists := current[key]
		if exists && value == p.set[key] {
			continue
		}
		if exists && !mayReplace(key) {
			c.taken, c.takenOld = append(c.taken, key), append(c.takenOld, value)
		}
		c.patch[key] = p.set[key]
		c.added++
	}
	for _, key := range p.remove {
		if _, exists := current[key]; !exists {
			c.missing = append(c.missing, key)
			continue
		}
		c.patch[key] = nil
		c.removed++
	}
	return c
}

// metadataOptions are the flags of label and annotate.
type metadataOptions struct {
	objectFlags
	noun            string // "label" or "annotation"
	overwrite, list bool
	isOne           bool // the arguments name one object
	resourceVersion string
}

func newLabel() *cobra.Command {
	o := metadataOptions{noun: "label"}
	cmd := &cobra.Command{
		Use:   "label [" + target.Usage + "] KEY=VALUE... KEY-...",
		Short: "Change the labels of objects in one or more clusters",
		Example: `  vedette label node n1 tier=front --account 'prod-*'
  vedette label pods -l app=web -n shop tier=back --overwrite
  vedette label deployment web -n shop tier-
  vedette label pods --all --list -n shop`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, args)
		},
	}
	o.addMetadataFlags(cmd, "label")
	return cmd
}

func newAnnotate() *cobra.Command {
	o := metadataOptions{noun: "annotation"}
	cmd := &cobra.Command{
		Use:   "annotate [" + target.Usage + "] KEY=VALUE... KEY-...",
		Short: "Change the annotations of objects in one or more clusters",
		Example: `  vedette annotate deployment web -n shop kubernetes.io/change-cause='new image' --account 'prod-*'
  vedette annotate pods --all -n shop note-`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, args)
		},
	}
	o.addMetadataFlags(cmd, "annotate")
	return cmd
}

func (o *metadataOptions) addMetadataFlags(cmd *cobra.Command, verb string) {
	o.addFlags(cmd, verb, "kubectl-"+verb)
	flags := cmd.Flags()
	flags.BoolVar(&o.overwrite, "overwrite", false, "Replace values that exist. Without it, a key with another value is an error.")
	flags.BoolVar(&o.list, "list", false, "Print the "+o.noun+"s of the objects, after the changes if there are any, without making them.")
	flags.StringVar(&o.resourceVersion, "resource-version", "", "Change only this version of the object. For one object only.")
}

// actionWord returns kubectl's word for a change.
func (o *metadataOptions) actionWord(c pairChange) string {
	switch {
	case o.noun == "annotation":
		return "annotated"
	case c.added > 0 && c.removed > 0:
		return "modified"
	case c.added > 0:
		return "labeled"
	case c.removed > 0:
		return "unlabeled"
	}
	return "not labeled"
}

func (o *metadataOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.Change.ValidateServer(); err != nil {
		return err
	}
	resources, changes, err := splitPairs(args, o.noun)
	if err != nil {
		return err
	}
	p, err := parsePairs(changes, o.noun)
	if err != nil {
		return err
	}
	o.isOne = isOneObject(resources)
	switch {
	case len(changes) == 0 && !o.list:
		return vedette.Errorf(vedette.Invalid, "at least one %s update is required: use KEY=VALUE or KEY-", o.noun)
	case o.list && o.Change.Output != "":
		return vedette.Errorf(vedette.Invalid, "--list and --output exclude each other")
	case o.resourceVersion != "" && !o.isOne:
		return vedette.Errorf(vedette.Invalid, "--resource-version may only be used with a single resource: each object has a version of its own")
	}
	validate := p.validateLabels
	if o.noun == "annotation" {
		validate = p.validateAnnotations
	}
	if err := validate(); err != nil {
		return err
	}
	if o.list { // nothing is changed, so --all needs no --yes
		o.Change.Confirm()
	}
	return o.ForEachObject(cmd, resources, func(ctx context.Context, run *fanout.Run, t target.Target) error {
		return o.change(ctx, run, t, p)
	})
}

// isOneObject reports whether arguments name one object.
func isOneObject(resources []string) bool {
	if len(resources) == 0 {
		return false
	}
	args, err := target.ParseResourceArgs(resources)
	return err == nil && len(args) == 1 && args[0].Name != ""
}

func (o *metadataOptions) change(ctx context.Context, run *fanout.Run, t target.Target, p pairs) error {
	what := o.noun + " " + t.DisplayName()
	if o.noun == "annotation" {
		what = "annotate " + t.DisplayName()
	}
	before, tree, ok, err := readForChange(ctx, run, what, t)
	if !ok {
		return err
	}
	current, _, _ := unstructured.NestedStringMap(tree, "metadata", o.noun+"s") // an API server stores no other values
	c := p.against(current, func(key string) bool {
		return o.overwrite || o.noun == "annotation" && key == "kubernetes.io/change-cause"
	})
	if len(c.taken) > 0 {
		run.Failf("%s: %v", what, o.takenError(c))
		return nil
	}
	if o.list {
		o.printList(run, before, t, current, c)
		return nil
	}
	for _, key := range c.missing {
		if o.noun == "label" { // as in kubectl, which says nothing of annotations
			run.Printf("label %q not found.", key)
		}
	}
	if len(c.patch) == 0 && (o.noun == "label" || o.resourceVersion == "") { // kubectl patches annotations then
		run.CountSuccess()
		run.Report(before, t.DisplayName(), o.actionWord(c))
		return nil
	}
	metadata := map[string]any{o.noun + "s": c.patch}
	if o.resourceVersion != "" {
		metadata["resourceVersion"] = o.resourceVersion
	}
	args := vedette.PatchArgs{Target: t.Reference(), Type: vedette.MergePatch, FieldManager: o.manager}
	return patchObject(ctx, run, what, args, map[string]any{"metadata": metadata}, o.actionWord(c))
}

// takenError returns kubectl's error for keys that have another value.
func (o *metadataOptions) takenError(c pairChange) error {
	var all []string
	for i, key := range c.taken {
		text := fmt.Sprintf("'%s' already has a value (%s)", key, c.takenOld[i])
		if o.noun == "label" {
			text += ", and --overwrite is false"
		}
		all = append(all, text)
	}
	if o.noun == "label" {
		return errors.New(strings.Join(all, ", "))
	}
	return errors.New("--overwrite is false but found the following declared annotation(s): " + strings.Join(all, "; "))
}

// printList prints the labels or annotations as they would be, in the order of their keys.
func (o *metadataOptions) printList(run *fanout.Run, out client.Outcome, t target.Target, current map[string]string, c pairChange) {
	shown := map[string]string{}
	maps.Copy(shown, current)
	for key, value := range c.patch {
		if value == nil {
			delete(shown, key)
		} else {
			shown[key] = fmt.Sprint(value)
		}
	}
	run.CountSuccess()
	indent := ""
	if !o.isOne {
		indent = " "
		run.Printf("Listing %ss for %s:", o.noun, output.ObjectName(out, t.DisplayName()))
	}
	for _, key := range slices.Sorted(maps.Keys(shown)) {
		run.Printf("%s%s=%s", indent, key, shown[key])
	}
}
