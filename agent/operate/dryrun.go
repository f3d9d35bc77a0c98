package operate

import (
	"context"
	"encoding/json"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// previewRecreate returns the object that a recreate would create. In a dry run the live object is
// still there. A creation with its name would fail, and an apply would fail for the immutable
// fields because of which users recreate. So the API server generates a name, which is then replaced.
func (r *run) previewRecreate(ctx context.Context, p request.Path, m manifest.Manifest) result {
	preview := manifest.Manifest{Object: manifest.Copy(m.Object)}
	delete(preview.Meta(), "name")
	preview.Meta()["generateName"] = m.Name + "-"
	raw, status, err := postObject(ctx, r.Sender, p, preview.Object, r.operator.cfg.Manager, false)
	if err != nil {
		return errorResult(err)
	}
	tree, err := manifest.ParseObject(raw, "object")
	if err != nil {
		return errorResult(err)
	}
	created := manifest.Manifest{Object: tree}
	created.Meta()["name"] = m.Name
	delete(created.Meta(), "generateName")
	return r.objectResult(p, created.Encode(), status)
}

// withReplicas sets the replicas that a dry run requested, because the API server returns them in the
// Scale only. If the kind does not have spec.replicas, the object stays as it is, and a message says
// so.
func withReplicas(raw []byte, replicas int64) ([]byte, string, error) {
	tree, err := manifest.ParseObject(raw, "object")
	if err != nil {
		return nil, "", err
	}
	spec, _ := tree["spec"].(object)
	if _, exists := spec["replicas"]; !exists {
		return raw, "the object is shown as it is now: its kind does not have the number of replicas in spec.replicas", nil
	}
	spec["replicas"] = replicas
	raw, err = json.Marshal(tree)
	return raw, "", err
}

// cleanDryRunOutcome removes the object to store, and Unchanged, because a dry run does not change
// the resourceVersion by which that is decided.
func cleanDryRunOutcome(out vedette.Outcome) vedette.Outcome {
	out.CacheObject, out.Awaited = nil, nil
	out.Absent = nil
	out.Unchanged = false
	for i, raw := range out.Objects {
		tree, err := manifest.ParseObject(raw, "object")
		if err != nil || manifest.NestedString(tree, "metadata", "resourceVersion") != request.DryRunVersion {
			continue
		}
		delete(tree["metadata"].(object), "resourceVersion")
		out.Objects[i] = manifest.Manifest{Object: tree}.Encode()
	}
	return out
}
