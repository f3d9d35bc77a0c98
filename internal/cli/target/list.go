package target

import (
	"cmp"
	"context"
	"encoding/json"

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
	}
}

// List reads the objects that match the label selector of t from the cluster.
func List(ctx context.Context, r *fanout.Run, t Target) ([]ListedObject, bool, error) {
	args := vedette.ListArgs{Target: t.Reference(), LabelSelector: t.Selector}
	args.Namespace, args.Name = cmp.Or(t.Namespace, "default"), ""
	out, ok, err := r.Query(ctx, "list "+t.DisplayName(), client.Operation{Args: args})
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
