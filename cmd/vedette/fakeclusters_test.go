package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/tables"
)

// fakeClusters replaces agents and their clusters. It keeps objects in memory and executes
// operations on them.
type fakeClusters struct {
	mu       sync.Mutex
	accounts map[vedette.AccountName]map[vedette.Key]*fakeObject
	version  int
	statuses []vedette.RolloutStatus // returned in order, the last one repeatedly
	logs     map[string]string       // by account, pod and container
	received []vedette.Operation
}

type fakeObject struct {
	manifest map[string]any
	applied  string
	version  int
	byApply  bool // it was applied, and not put
}

func newFakeClusters() *fakeClusters {
	return &fakeClusters{accounts: map[vedette.AccountName]map[vedette.Key]*fakeObject{}, logs: map[string]string{}}
}

// Execute executes an operation.
func (c *fakeClusters) Execute(_ context.Context, op vedette.Operation) vedette.Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = append(c.received, op)
	warnings := c.warnings(op)
	out := c.execute(op)
	out.Warnings = warnings
	out.ID = op.ID
	if out.ID == "" {
		out.ID = "01J00000000000000000000000"
	}
	return out
}

// warnings returns the texts in the annotation "warns" of the object that an operation writes
// or names.
func (c *fakeClusters) warnings(op vedette.Operation) []string {
	var m struct {
		Metadata struct{ Annotations struct{ Warns string } }
	}
	if a, is := op.Args.(vedette.ApplyArgs); is {
		_ = json.Unmarshal(a.Manifest, &m) // an invalid manifest has no warnings
		if a.Fields == vedette.FieldValidationWarn && bytes.Contains(a.Manifest, []byte(`"dat":`)) {
			return []string{`unknown field "dat"`}
		}
	} else if targeted, is := op.Args.(interface{ GetTarget() vedette.Target }); is {
		key, err := keyOf(targeted.GetTarget())
		if found := c.accounts[op.Account][key]; err == nil && found != nil {
			_ = json.Unmarshal([]byte(found.applied), &m)
		}
	}
	if m.Metadata.Annotations.Warns == "" {
		return nil
	}
	return strings.Split(m.Metadata.Annotations.Warns, "; ")
}

func failedOutcome(status int, reason, format string, args ...any) vedette.Outcome {
	return vedette.Outcome{State: vedette.Failed, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func (c *fakeClusters) execute(op vedette.Operation) vedette.Outcome {
	if op.Account == "prod-3" {
		return failedOutcome(503, "ServiceUnavailable", "no agent serves account prod-3: none has connected within 10s, and nothing was done")
	}
	if c.accounts[op.Account] == nil {
		c.accounts[op.Account] = map[vedette.Key]*fakeObject{}
	}
	objects := c.accounts[op.Account]
	if op.DryRun {
		objects = cloneObjects(objects)
	}
	switch a := op.Args.(type) {
	case vedette.DiscoverArgs:
		return c.discover(op.Account)
	case vedette.ApplyArgs:
		return c.apply(objects, a)
	case vedette.ListArgs:
		return c.list(objects, a)
	case vedette.LogsArgs:
		return c.log(op.Account, a)
	case vedette.DeleteArgs:
		return c.delete(objects, a)
	case vedette.PruneArgs:
		return c.prune(objects, a)
	case vedette.AccessArgs:
		if a.List {
			return resultOutcome(vedette.AccessResult{Incomplete: true, Error: "webhook authorizer does not support user rule resolution",
				Rules: []vedette.AccessRule{{Verbs: []string{"list", "get"}, Groups: []string{"", "apps"}, Resources: []string{"deployments"}},
					{Verbs: []string{"*"}, Groups: []string{""}, Resources: []string{"pods"}, Names: []string{"a", "b"}}, {Verbs: []string{"get"}, Paths: []string{"/healthz"}}}})
		}
		return resultOutcome(vedette.AccessResult{Allowed: a.Kind != "nodes", Reason: "RBAC: no rule", Warnings: c.warnings(op)})
	}
	ref := op.Args.(interface{ GetTarget() vedette.Target }).GetTarget()
	key, err := keyOf(ref)
	if err != nil {
		return failedOutcome(404, "NotFound", "the cluster serves no kind %q", ref.Kind)
	}
	found := objects[key]
	if found == nil {
		return failedOutcome(404, "NotFound", "%ss %q not found", strings.ToLower(key.Kind.Name), key.Name)
	}
	return c.executeOnObject(op, key, found)
}

// discover returns the kinds with views, and those that the test has added.
func (c *fakeClusters) discover(account vedette.AccountName) vedette.Outcome {
	var kinds []map[string]any
	add := func(k vedette.ServedKind) {
		kinds = append(kinds, map[string]any{"kind": k.Kind.Name, "group": k.Kind.Group, "version": k.Version, "versions": k.Versions,
			"plural": k.Plural, "singular": k.Singular, "shortNames": k.ShortNames, "namespaced": k.Namespaced, "categories": k.Categories, "verbs": k.Verbs})
	}
	for _, r := range tables.KnownResources() {
		k := vedette.ServedKind{Resource: r, Versions: []string{r.Version}, Verbs: []string{"get", "list", "watch"}}
		if slices.Contains([]string{"Pod", "Service", "Deployment"}, r.Kind.Name) {
			k.Categories = []string{"all"}
		}
		add(k)
	}
	for _, k := range unreportedKinds {
		if len(k.accounts) == 0 || slices.Contains(k.accounts, account) {
			add(k.ServedKind)
		}
	}
	return resultOutcome(map[string]any{"kinds": kinds})
}

// unreportedKinds are kinds that clusters serve and no agent reports.
var unreportedKinds = []struct {
	vedette.ServedKind
	accounts []vedette.AccountName // empty for all
}{
	{unreportedKind("rbac.authorization.k8s.io", "v1", "Role", "roles", nil, ""), nil},
	{unreportedKind("a.example.com", "v1", "Foo", "foos", []string{"fo", "po"}, "all"), []vedette.AccountName{"dev"}},
	{unreportedKind("b.example.com", "v1beta1", "Foo", "foos", []string{"fo"}, ""), []vedette.AccountName{"prod-1"}},
}

func unreportedKind(group, version, kind, plural string, shortNames []string, category string) vedette.ServedKind {
	k := vedette.ServedKind{Versions: []string{version}, Verbs: []string{"get", "list", "delete"}, Resource: vedette.Resource{
		Kind: vedette.Kind{Group: group, Name: kind}, Version: version, Plural: plural, Singular: strings.ToLower(kind), ShortNames: shortNames, Namespaced: true}}
	if category != "" {
		k.Categories = []string{category}
	}
	return k
}

// cloneObjects returns copies, which a dry run may change.
func cloneObjects(objects map[vedette.Key]*fakeObject) map[vedette.Key]*fakeObject {
	clones := map[vedette.Key]*fakeObject{}
	for key, o := range objects {
		raw, err := json.Marshal(o.manifest)
		if err != nil {
			panic(err)
		}
		clone := *o
		clone.manifest = nil
		if err := json.Unmarshal(raw, &clone.manifest); err != nil {
			panic(err)
		}
		clones[key] = &clone
	}
	return clones
}

func (c *fakeClusters) executeOnObject(op vedette.Operation, key vedette.Key, found *fakeObject) vedette.Outcome {
	switch a := op.Args.(type) {
	case vedette.GetArgs:
		return objectOutcome(key, found, 200)
	case vedette.ScaleArgs:
		found.manifest["spec"].(map[string]any)["replicas"] = a.Replicas
	case vedette.PatchArgs:
		found.manifest["patched"] = string(a.Patch)
	case vedette.StatusArgs:
		status := c.statuses[0]
		if len(c.statuses) > 1 {
			c.statuses = c.statuses[1:]
		}
		return resultOutcome(status)
	case vedette.HistoryArgs:
		return resultOutcome([]vedette.Revision{{Number: 1, Name: "web-1", ChangeCause: "first"}, {Number: 2, Name: "web-2", Current: true}})
	case vedette.UndoArgs:
		if a.Revision == 2 {
			return vedette.Outcome{State: vedette.Done, Status: 200, Message: "skipped rollback (current template already matches revision 2)"}
		}
	case vedette.PauseArgs:
		if found.manifest["paused"] == true {
			return failedOutcome(400, "BadRequest", "deployments.apps %q is already paused", key.Name)
		}
		found.manifest["paused"] = true
	case vedette.RestartArgs:
		if key.Name == "lost" {
			return vedette.Outcome{State: vedette.Lost, Status: 504, Reason: "Lost", Message: "it is unknown whether this took effect"}
		}
	}
	if !op.DryRun {
		c.version++
		found.version = c.version
	}
	return objectOutcome(key, found, 200)
}

func resultOutcome(v any) vedette.Outcome {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return vedette.Outcome{State: vedette.Done, Status: 200, Result: raw}
}

func objectOutcome(key vedette.Key, o *fakeObject, status int) vedette.Outcome {
	o.manifest["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(o.version)
	o.manifest["metadata"].(map[string]any)["uid"] = "uid of " + key.String()
	raw, err := json.Marshal(o.manifest)
	if err != nil {
		panic(err)
	}
	return vedette.Outcome{State: vedette.Done, Status: status, Keys: []vedette.Key{key}, Objects: []json.RawMessage{raw}}
}

func unreportedResources() (resources []vedette.Resource) {
	for _, k := range unreportedKinds {
		resources = append(resources, k.Resource)
	}
	return resources
}

func keyOf(t vedette.Target) (vedette.Key, error) {
	r, err := tables.FindResource(nil, t.Kind)
	if err != nil {
		found := vedette.FindKinds(unreportedResources(), t.Kind, func(r vedette.Resource) (vedette.Resource, []string) { return r, nil }).Kinds
		if len(found) == 0 {
			return vedette.Key{}, err
		}
		r = found[0]
	}
	key := vedette.Key{Kind: r.Kind, Name: t.Name}
	if r.Namespaced {
		key.Namespace = cmp.Or(t.Namespace, "default")
	}
	return key, nil
}

func (c *fakeClusters) apply(objects map[vedette.Key]*fakeObject, a vedette.ApplyArgs) vedette.Outcome {
	var manifest map[string]any
	if err := json.Unmarshal(a.Manifest, &manifest); err != nil {
		panic(err)
	}
	metadata := manifest["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if name == "" {
		name = metadata["generateName"].(string) + "x7k2p"
		metadata["name"] = name
	}
	switch {
	case manifest["dat"] != nil && (a.Fields == vedette.FieldValidationDefault || a.Fields == vedette.FieldValidationStrict):
		return failedOutcome(400, "BadRequest", `strict decoding error: unknown field "dat"`)
	case name == "refused":
		return failedOutcome(403, "Forbidden", `configmaps "refused" is forbidden: User "agent" cannot patch resource "configmaps"`)
	case name == "taken" && a.Strategy == vedette.StrategyServerSide:
		return failedOutcome(409, "Conflict", `Apply failed with 1 conflict: conflict with "helm": .data.sky`)
	}
	namespace, _ := metadata["namespace"].(string)
	key, err := keyOf(vedette.Target{Kind: manifest["kind"].(string), Namespace: cmp.Or(namespace, a.Namespace), Name: name})
	if err != nil {
		return failedOutcome(404, "NotFound", "the cluster serves no kind %v", manifest["kind"])
	}
	if key.Namespace != "" {
		metadata["namespace"] = key.Namespace
	}
	found := objects[key]
	switch {
	case found != nil && a.Strategy == vedette.StrategyCreateOnly:
		return failedOutcome(409, "AlreadyExists", "%ss %q already exists", strings.ToLower(key.Kind.Name), key.Name)
	case found == nil && a.MustExist:
		return failedOutcome(404, "NotFound", "%ss %q not found", strings.ToLower(key.Kind.Name), key.Name)
	}
	if found != nil && bytes.Equal([]byte(found.applied), a.Manifest) {
		out := objectOutcome(key, found, 200)
		out.Unchanged = a.Compare
		return out
	}
	c.version++
	objects[key] = &fakeObject{manifest, string(a.Manifest), c.version, a.Strategy != vedette.StrategyCreateOnly}
	return objectOutcome(key, objects[key], map[bool]int{true: 201, false: 200}[found == nil])
}

// put stores an object without an operation.
func (c *fakeClusters) put(account vedette.AccountName, manifest string) {
	out := c.Execute(context.Background(), vedette.Operation{Account: account, Args: vedette.ApplyArgs{Manifest: []byte(manifest), Strategy: vedette.StrategyCreateOnly}})
	if out.State != vedette.Done {
		panic(out.Message)
	}
}

func (c *fakeClusters) matchingKeys(objects map[vedette.Key]*fakeObject, t vedette.Target, selector string, allNamespaces bool) []vedette.Key {
	want, err := keyOf(t)
	if err != nil {
		return nil
	}
	labelSelector, err := labels.Parse(selector)
	if err != nil {
		panic(err)
	}
	var keys []vedette.Key
	for key, o := range objects {
		if key.Kind == want.Kind && (allNamespaces || key.Namespace == want.Namespace) && labelSelector.Matches(o.labels()) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b vedette.Key) int { return strings.Compare(a.Name, b.Name) })
	return keys
}

func (o *fakeObject) labels() labels.Set {
	var m struct {
		Metadata struct{ Labels map[string]string }
	}
	raw, _ := json.Marshal(o.manifest)
	_ = json.Unmarshal(raw, &m)
	return m.Metadata.Labels
}

// prune deletes objects as the agent does, but ignores the list of kinds.
func (c *fakeClusters) prune(objects map[vedette.Key]*fakeObject, a vedette.PruneArgs) vedette.Outcome {
	out := vedette.Outcome{State: vedette.Done, Status: 200}
	labelSelector, err := labels.Parse(a.LabelSelector)
	if err != nil {
		panic(err)
	}
	left := vedette.PruneResult{Kinds: []string{"apps/v1/Deployment", "batch/v1/Job", "core/v1/ConfigMap"}}
	for key, o := range objects {
		within := key.Namespace == "" || slices.Contains(a.Namespaces, key.Namespace)
		if !within || !labelSelector.Matches(o.labels()) || slices.Contains(a.Keep, "uid of "+key.String()) {
			continue
		}
		if !o.byApply {
			left.Kept = append(left.Kept, vedette.KeptObject{Kind: key.Kind.String(), Namespace: key.Namespace, Name: key.Name, Reason: "it was never applied"})
			continue
		}
		out.Keys = append(out.Keys, key)
		delete(objects, key)
	}
	slices.SortFunc(left.Kept, func(a, b vedette.KeptObject) int { return strings.Compare(a.Kind+a.Name, b.Kind+b.Name) })
	if out.Result, err = json.Marshal(left); err != nil {
		panic(err)
	}
	slices.SortFunc(out.Keys, func(a, b vedette.Key) int { return strings.Compare(a.String(), b.String()) })
	return out
}

func (c *fakeClusters) list(objects map[vedette.Key]*fakeObject, a vedette.ListArgs) vedette.Outcome {
	all := vedette.Outcome{State: vedette.Done, Status: 200}
	for _, key := range c.matchingKeys(objects, a.Target, a.LabelSelector, a.Namespace == "") {
		if name, is := strings.CutPrefix(a.FieldSelector, "metadata.name="); is && name != key.Name {
			continue
		}
		one := objectOutcome(key, objects[key], 200)
		all.Objects = append(all.Objects, one.Objects...)
	}
	return all
}

func (c *fakeClusters) delete(objects map[vedette.Key]*fakeObject, a vedette.DeleteArgs) vedette.Outcome {
	out := vedette.Outcome{State: vedette.Done, Status: 200}
	keys := c.matchingKeys(objects, a.Target, a.LabelSelector, a.AllNamespaces)
	if a.Name != "" {
		key, _ := keyOf(a.Target)
		keys = []vedette.Key{key}
		if objects[key] == nil && a.MissingOK {
			return out
		}
		if objects[key] == nil {
			return failedOutcome(404, "NotFound", "%ss %q not found", strings.ToLower(key.Kind.Name), key.Name)
		}
	}
	for _, key := range keys {
		if name, is := strings.CutPrefix(a.FieldSelector, "metadata.name="); is && name != key.Name {
			continue
		}
		delete(objects, key)
		out.Keys, out.UIDs = append(out.Keys, key), append(out.UIDs, "uid")
	}
	return out
}

func (c *fakeClusters) log(account vedette.AccountName, a vedette.LogsArgs) vedette.Outcome {
	text, ok := c.logs[string(account)+" "+a.Name+" "+a.Container]
	switch {
	case !ok:
		return failedOutcome(400, "BadRequest", "container %q in pod %q is waiting to start: ContainerCreating", a.Container, a.Name)
	case strings.HasPrefix(text, "breaks: "):
		r, w := io.Pipe()
		go func() { // ends with the reader
			_, _ = io.WriteString(w, strings.TrimPrefix(text, "breaks: "))
			_ = w.CloseWithError(errors.New("cut"))
		}()
		return vedette.Outcome{State: vedette.Done, Status: 200, Stream: r}
	}
	if a.TailLines != nil {
		lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
		text = strings.Join(lines[max(0, len(lines)-int(*a.TailLines)):], "") + "\n"
	}
	return vedette.Outcome{State: vedette.Done, Status: 200, Stream: io.NopCloser(strings.NewReader(text))}
}
