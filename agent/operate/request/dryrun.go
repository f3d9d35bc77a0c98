package request

import (
	"encoding/json"
	"net/http"

	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// dryRunAll is the only value that API servers accept: they run all stages but storing.
const dryRunAll = "All"

// asDryRun returns the request as a dry run. API servers read the options of a deletion from its
// body; if it has one, they ignore the query.
func (req Request) asDryRun() Request {
	req.dryRun, req.NonIdempotent = true, false
	if req.Method == http.MethodDelete {
		req.DeleteOptions.DryRun = []string{dryRunAll}
		return req
	}
	return req.withQuery("dryRun", dryRunAll)
}

// DryRunVersion is the resourceVersion of objects that a dry run creates. API servers set none, but
// the redactor requires one; outcomes do not have it.
const DryRunVersion = "0"

// withDryRunVersion sets DryRunVersion if the object has no resourceVersion.
func withDryRunVersion(raw []byte) ([]byte, error) {
	tree, err := manifest.ParseObject(raw, "object")
	if err != nil {
		return nil, err
	}
	if meta, _ := tree["metadata"].(object); meta != nil && manifest.NestedString(meta, "resourceVersion") == "" {
		meta["resourceVersion"] = DryRunVersion
	}
	return json.Marshal(tree)
}
