package operate

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/vedette-io/vedette"
)

// dryRunKey marks the context of an operation that is a dry run. It is looked at
// where requests are sent, so that no verb can forget it.
type dryRunKey struct{}

func withDryRun(ctx context.Context) context.Context {
	return context.WithValue(ctx, dryRunKey{}, true)
}

func isDry(ctx context.Context) bool { return ctx.Value(dryRunKey{}) != nil }

// dryRunAll is the one value that API servers know: all stages but the storage.
const dryRunAll = "All"

// asDryRun is the same request as a dry run. API servers read the options of a
// deletion from its body and, where it has one, from nowhere else.
func (c call) asDryRun() call {
	c.dry, c.once = true, false
	if c.method == http.MethodDelete {
		c.body = dryDeletion(c.body)
		return c
	}
	return c.with("dryRun", dryRunAll)
}

func dryDeletion(body []byte) []byte {
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

// createBeside tells what would be created in the place of an object that a dry
// run leaves where it is. To create it under its own name would fail for that, and
// to merge it into what is there for the very fields that a recreate is asked for.
// So the API server is asked to make up a name, which the answer does not tell.
func (o *Operator) createBeside(ctx context.Context, p place, m manifest) result {
	beside := manifest{object: copied(m.object)}
	delete(beside.meta(), "name")
	beside.meta()["generateName"] = m.name + "-"
	raw, status, err := o.do(ctx, p.list(), call{method: http.MethodPost, contentType: typeJSON, body: beside.raw(),
		query: url.Values{"fieldManager": {o.cfg.Manager}}, accept: p.accept(), manifest: true})
	if err != nil {
		return failed(err)
	}
	tree, err := parseObject(raw, "object")
	if err != nil {
		return failed(err)
	}
	created := manifest{object: tree}
	created.meta()["name"] = m.name
	delete(created.meta(), "generateName")
	return o.told(p, created.raw(), status)
}

// scaled tells an object with the replicas that a dry run has asked for, which the
// cluster tells of the Scale only. Kinds that keep the number elsewhere than all
// built-in ones are told as they are, and a message says so.
func scaled(raw []byte, replicas int64) ([]byte, string, error) {
	tree, err := parseObject(raw, "object")
	if err != nil {
		return nil, "", err
	}
	spec, _ := tree["spec"].(object)
	if _, has := spec["replicas"]; !has {
		return raw, "the object is told as it is: its kind does not keep the number of replicas in spec.replicas", nil
	}
	spec["replicas"] = replicas
	raw, err = json.Marshal(tree)
	return raw, "", err
}

// notWritten is the version of what a dry run would create. API servers give it
// none, and what redacts objects takes none without one; dry takes it out again.
const notWritten = "0"

// versioned gives what a dry run created a version, where it has none.
func versioned(raw []byte) ([]byte, error) {
	tree, err := parseObject(raw, "object")
	if err != nil {
		return nil, err
	}
	if meta, _ := tree["metadata"].(object); meta != nil && text(meta, "resourceVersion") == "" {
		meta["resourceVersion"] = notWritten
	}
	return json.Marshal(tree)
}

// dry makes an outcome that of a dry run: nothing of it must be stored, and its
// version, which does not move, tells nothing of what would be changed.
func dry(out vedette.Outcome) vedette.Outcome {
	out.Fresh, out.Unchanged = nil, false
	for i, raw := range out.Objects {
		tree, err := parseObject(raw, "object")
		if err != nil || text(tree, "metadata", "resourceVersion") != notWritten {
			continue
		}
		delete(tree["metadata"].(object), "resourceVersion")
		out.Objects[i] = manifest{object: tree}.raw()
	}
	return out
}
