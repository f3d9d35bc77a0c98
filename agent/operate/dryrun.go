package operate

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// dryRunAll is the one value that API servers know: all stages but the storage.
const dryRunAll = "All"

// asDryRun is the same request as a dry run. API servers read the options of a
// deletion from its body and, where it has one, from nowhere else.
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

// previewRecreate tells what would be created in the place of an object that a dry
// run leaves where it is. To create it under its own name would fail for that, and
// to merge it into what is there for the very fields that a recreate is asked for.
// So the API server is asked to make up a name, which the answer does not tell.
func (r *run) previewRecreate(ctx context.Context, p resourcePath, m manifest.Manifest) result {
	preview := manifest.Manifest{Object: manifest.Copy(m.Object)}
	delete(preview.Meta(), "name")
	preview.Meta()["generateName"] = m.Name + "-"
	raw, status, err := r.do(ctx, p.collection(), request{method: http.MethodPost, contentType: contentTypeJSON, body: preview.Encode(),
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

// withReplicas tells an object with the replicas that a dry run has asked for, which the
// cluster tells of the Scale only. Kinds that keep the number elsewhere than all
// built-in ones are told as they are, and a message says so.
func withReplicas(raw []byte, replicas int64) ([]byte, string, error) {
	tree, err := manifest.ParseObject(raw, "object")
	if err != nil {
		return nil, "", err
	}
	spec, _ := tree["spec"].(object)
	if _, exists := spec["replicas"]; !exists {
		return raw, "the object is told as it is: its kind does not keep the number of replicas in spec.replicas", nil
	}
	spec["replicas"] = replicas
	raw, err = json.Marshal(tree)
	return raw, "", err
}

// dryRunVersion is the version of what a dry run would create. API servers give it
// none, and what redacts objects takes none without one; dry takes it out again.
const dryRunVersion = "0"

// withDryRunVersion gives what a dry run created a version, where it has none.
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

// cleanDryRunOutcome makes an outcome that of a dry run: nothing of it must be stored, and its
// version, which does not move, tells nothing of what would be changed.
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
