package change

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/target"
)

func newSet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Change single fields of objects",
		Long:  "Change single fields of objects. For other fields than images, use `vedette patch`.",
	}
	cmd.AddCommand(newSetImage())
	return cmd
}

// allContainers is the name that means all containers of a pod.
const allContainers = "*"

func newSetImage() *cobra.Command {
	var o objectFlags
	cmd := &cobra.Command{
		Use:   "image [" + target.Usage + "] CONTAINER=IMAGE...",
		Short: "Change the images of containers in one or more clusters",
		Long: `Change the images of the containers and init containers of pods, Deployments, StatefulSets, DaemonSets,
ReplicaSets, ReplicationControllers, Jobs and CronJobs. The name * means all containers.`,
		Example: `  vedette set image deployment/web main=example.com/web:2 -n shop --account 'prod-*'
  vedette set image deployments -l app=web '*=example.com/web:2' -n shop --dry-run=server`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Change.ValidateServer(); err != nil {
				return err
			}
			resources, changes, err := splitPairs(args, "image")
			if err != nil {
				return err
			}
			images, err := parseImages(changes)
			if err != nil {
				return err
			}
			return o.ForEachObject(cmd, resources, func(ctx context.Context, run *fanout.Run, t target.Target) error {
				return setImages(ctx, run, t, images, o.manager)
			})
		},
	}
	o.addFlags(cmd, "set image", "kubectl-set")
	return cmd
}

// parseImages parses CONTAINER=IMAGE.
func parseImages(args []string) (map[string]string, error) {
	p, err := parsePairs(args, "image")
	switch {
	case err != nil:
		return nil, err
	case len(p.remove) > 0:
		return nil, vedette.Errorf(vedette.Invalid, "invalid image %q: use CONTAINER=IMAGE", p.remove[0]+"-")
	case len(p.set) == 0:
		return nil, vedette.Errorf(vedette.Invalid, "at least one image update is required: use CONTAINER=IMAGE")
	case len(p.set) > 1 && p.set[allContainers] != "":
		return nil, vedette.Errorf(vedette.Invalid, "all containers are already specified by *, but saw more than one CONTAINER=IMAGE pair")
	}
	for name, image := range p.set {
		if image == "" {
			return nil, vedette.Errorf(vedette.Invalid, "the image of %s is empty: use CONTAINER=IMAGE", name)
		}
	}
	return p.set, nil
}

// podSpecPath returns where an object has the spec of its pods; nil if it has none.
func podSpecPath(tree map[string]any) []string {
	for _, path := range [][]string{{"spec", "jobTemplate", "spec", "template", "spec"}, {"spec", "template", "spec"}, {"spec"}} {
		if len(listAt(tree, path, "containers")) > 0 {
			return path
		}
	}
	return nil
}

func listAt(tree map[string]any, path []string, name string) []any {
	found, _, _ := unstructured.NestedFieldNoCopy(tree, append(slices.Clip(path), name)...)
	list, _ := found.([]any)
	return list
}

// imagePatch returns the strategic merge patch that sets images, nil if all are set already, and the containers that
// the object does not have.
func imagePatch(tree map[string]any, path []string, images map[string]string) (patch map[string]any, missing []string) {
	found := map[string]bool{}
	changed := map[string]any{}
	for _, list := range []string{"initContainers", "containers"} {
		var elements []any
		for _, element := range listAt(tree, path, list) {
			container, _ := element.(map[string]any)
			name, _ := container["name"].(string)
			key := name
			if images[allContainers] != "" {
				key = allContainers
			}
			image, wanted := images[key]
			if !wanted {
				continue
			}
			found[key] = true
			if container["image"] != image {
				elements = append(elements, map[string]any{"name": name, "image": image})
			}
		}
		if len(elements) > 0 {
			changed[list] = elements
		}
	}
	for _, name := range slices.Sorted(maps.Keys(images)) {
		if !found[name] {
			missing = append(missing, name)
		}
	}
	if len(changed) == 0 {
		return nil, missing
	}
	for _, name := range slices.Backward(path) {
		changed = map[string]any{name: changed}
	}
	return changed, missing
}

func setImages(ctx context.Context, run *fanout.Run, t target.Target, images map[string]string, manager string) error {
	what := "set image of " + t.DisplayName()
	_, tree, ok, err := readForChange(ctx, run, what, t)
	if !ok {
		return err
	}
	path := podSpecPath(tree)
	if path == nil {
		run.Failf("%s: the object is not a pod or does not have a pod template", what)
		return nil
	}
	patch, missing := imagePatch(tree, path, images)
	if len(missing) > 0 {
		run.Failf("%s: unable to find container named %s", what, quoteAll(missing))
		return nil
	}
	if patch == nil { // kubectl prints nothing either
		run.CountSuccess()
		return nil
	}
	args := vedette.PatchArgs{Target: t.Reference(), Type: vedette.StrategicPatch, FieldManager: manager}
	return patchObject(ctx, run, what, args, patch, "image updated")
}

func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(quoted, ", ")
}
