package target

import (
	"cmp"
	"context"
	"encoding/json"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/client"
)

// ListedObject has the fields of a listed object that commands use.
type ListedObject struct {
	Metadata struct {
		Namespace, Name string
		Annotations     map[string]string
	}
	Spec struct {
		Containers, InitContainers, EphemeralContainers []struct{ Name string }
		Selector                                        json.RawMessage // of pods
	}
}

// ListArgs returns the arguments of a list of the objects that match the selectors of t.
func (t Target) ListArgs() vedette.ListArgs {
	args := vedette.ListArgs{Target: t.Reference(), LabelSelector: t.Selector, FieldSelector: t.FieldSelector}
	args.Name = ""
	args.Namespace = cmp.Or(t.Namespace, "default")
	if t.AllNamespaces {
		args.Namespace = ""
	}
	return args
}

// ObjectOf decodes the one object of an outcome, with numbers as int64 and float64. It reports false, and counts a failure, if there is
// none.
func ObjectOf(run *fanout.Run, what string, out client.Outcome) (object map[string]any, ok bool) {
	if len(out.Objects) != 1 {
		run.Failf("%s: the agent did not return the object", what)
		return nil, false
	}
	if err := kjson.Unmarshal(out.Objects[0], &object); err != nil {
		run.Failf("%s: the cluster returned an invalid object: %v", what, err)
		return nil, false
	}
	return object, true
}

// List reads the objects that match the label selector of t from the cluster.
func List(ctx context.Context, r *fanout.Run, t Target) ([]ListedObject, bool, error) {
	out, ok, err := r.Query(ctx, "list "+t.DisplayName(), client.Operation{Args: t.ListArgs()})
	if !ok {
		return nil, false, err
	}
	var all []ListedObject
	for _, raw := range out.Objects {
		var o ListedObject
		if err := json.Unmarshal(raw, &o); err != nil {
			r.Failf("%s: the cluster returned an invalid object: %v", t.DisplayName(), err)
			return nil, false, nil
		}
		all = append(all, o)
	}
	return all, true, nil
}
