package operate

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// dryRunAll is the only value that API servers accept: they run all stages but storing.
const dryRunAll = "All"

// asDryRun returns the request as a dry run. API servers read the options of a deletion from its
// body; if it has one, they ignore the query.
func (req request) asDryRun() request {
	req.dryRun, req.nonIdempotent = true, false
	if req.method == http.MethodDelete {
		req.body = withDryRunOption(req.body)
		return req
	}
	return req.withQuery("dryRun", dryRunAll)
}

func withDryRunOption(body []byte) []byte {
	options := object{"apiVersion": "v1", "kind": "DeleteOptions"}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &options); err != nil { // it was encoded here
			panic(err)
		}
	}
	options["dryRun"] = []string{dryRunAll}
	raw, err := json.Marshal(options)
	if err != nil { // what was decoded can be encoded
		panic(err)
	}
	return raw
}

// previewRecreate returns the object that a recreate would create. In a dry run the live object is
// still there. A creation with its name would fail, and an apply would fail for the immutable
// fields because of which users recreate. So the API server generates a name, which is then replaced.
func (r *run) previewRecreate(ctx context.Context, p resourcePath, m manifest.Manifest) result {
	preview := manifest.Manifest{Object: manifest.Copy(m.Object)}
	delete(preview.Meta(), "name")
	preview.Meta()["generateName"] = m.Name + "-"
	raw, status, err := r.do(ctx, p, request{method: http.MethodPost, toCollection: true, contentType: contentTypeJSON, body: preview.Encode(),
		query: url.Values{"fieldManager": {r.operator.cfg.Manager}}, accept: p.acceptHeader(), isManifest: true})
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

// dryRunVersion is the resourceVersion of objects that a dry run creates. API servers set none, but
// the redactor requires one; cleanDryRunOutcome removes it.
const dryRunVersion = "0"

// withDryRunVersion sets dryRunVersion if the object has no resourceVersion.
func withDryRunVersion(raw []byte) ([]byte, error) {
	tree, err := manifest.ParseObject(raw, "object")
	if err != nil {
		return nil, err
	}
	if meta, _ := tree["metadata"].(object); meta != nil && manifest.NestedString(meta, "resourceVersion") == "" {
		meta["resourceVersion"] = dryRunVersion
	}
	return json.Marshal(tree)
}

// cleanDryRunOutcome removes the object to store, and Unchanged, because a dry run does not change
// the resourceVersion by which that is decided.
func cleanDryRunOutcome(out vedette.Outcome) vedette.Outcome {
	out.CacheObject, out.Unchanged = nil, false
	for i, raw := range out.Objects {
		tree, err := manifest.ParseObject(raw, "object")
		if err != nil || manifest.NestedString(tree, "metadata", "resourceVersion") != dryRunVersion {
			continue
		}
		delete(tree["metadata"].(object), "resourceVersion")
		out.Objects[i] = manifest.Manifest{Object: tree}.Encode()
	}
	return out
}
