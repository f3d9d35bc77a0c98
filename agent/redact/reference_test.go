package redact

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
)

// reference redacts trees of Go values. It is slow and simple, and was written from the rules
// instead of from the code that it checks.
type reference struct {
	config   Config
	resource vedette.Resource
}

func decode(tb testing.TB, raw []byte) any {
	tb.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		tb.Fatalf("decode %q: %v", raw, err)
	}
	return v
}

func isSecret(m tree) bool {
	kind, _ := m["kind"].(string)
	version, ok := m["apiVersion"].(string)
	return (kind == "Secret" || kind == "SecretList") && (!ok || version == "v1")
}

func (r reference) hasRules() bool {
	return len(r.config.Annotations)+len(r.config.Environment) > 0 ||
		r.resource.Kind == vedette.Kind{Name: "ConfigMap"} && len(r.config.ConfigMapKeys) > 0
}

func (r reference) body(m tree) tree {
	secret := r.resource.Kind == vedette.Kind{Name: "Secret"} || isSecret(m)
	out := tree{}
	for name, v := range m {
		switch {
		case name == "kind" || name == "apiVersion":
		case name == "metadata":
			if meta, ok := v.(tree); ok {
				out[name] = r.metadata(meta, secret)
			} else if !secret {
				out[name] = v
			}
		case secret:
			if (name == "type" || name == "immutable") && !isContainer(v) {
				out[name] = v
			}
		default:
			out[name] = r.member(name, v, false)
			if (name == "data" || name == "binaryData") && r.resource.Kind == (vedette.Kind{Name: "ConfigMap"}) {
				out[name] = r.configMap(name, v)
			}
		}
	}
	out["kind"] = identity(m["kind"], "PartialObjectMetadata", r.resource.Kind.Name)
	out["apiVersion"] = identity(m["apiVersion"], "meta.k8s.io/", r.resource.APIVersion())
	return out
}

func identity(v any, partialValue, requested string) any {
	s, ok := v.(string)
	if requested != "" && (!ok || s == "" || s == partialValue || strings.HasSuffix(partialValue, "/") && strings.HasPrefix(s, partialValue)) {
		return requested
	}
	return v
}

func isContainer(v any) bool {
	switch v.(type) {
	case tree, []any:
		return true
	}
	return false
}

var secretMetadata = regexp.MustCompile(`^(name|namespace|uid|resourceVersion|creationTimestamp|generateName|selfLink|deletionTimestamp|generation|deletionGracePeriodSeconds|labels|annotations|ownerReferences|finalizers)$`)

func (r reference) metadata(m tree, secret bool) tree {
	out := tree{}
	for name, v := range m {
		if name == "managedFields" || secret && !secretMetadata.MatchString(name) || secret && !hasExpectedType(name, v) {
			continue
		}
		switch t := v.(type) {
		case tree:
			switch name {
			case "annotations":
				out[name] = r.annotations(t, secret)
				continue
			case "labels":
				out[name] = r.labels(t, secret)
				continue
			}
		case []any:
			if name == "ownerReferences" {
				out[name] = r.owners(t, secret)
				continue
			}
		}
		out[name] = r.member(name, v, secret)
	}
	return out
}

func hasExpectedType(name string, v any) bool {
	switch name {
	case "labels", "annotations":
		_, ok := v.(tree)
		return ok
	case "ownerReferences", "finalizers":
		_, ok := v.([]any)
		return ok
	case "generateName", "selfLink", "deletionTimestamp", "generation", "deletionGracePeriodSeconds":
		return !isContainer(v)
	}
	_, ok := v.(string)
	return ok
}

func (r reference) labels(m tree, secret bool) tree {
	out := tree{}
	for k, v := range m {
		if s, ok := v.(string); !secret || ok && regexp.MustCompile(`^[-_.0-9A-Za-z]{0,63}$`).MatchString(s) {
			out[k] = r.value(v, secret)
		}
	}
	return out
}

func (r reference) owners(list []any, secret bool) []any {
	out := []any{}
	allowed := regexp.MustCompile(`^(apiVersion|kind|name|uid|controller|blockOwnerDeletion)$`)
	for _, e := range list {
		m, ok := e.(tree)
		if !ok {
			out = append(out, r.value(e, secret))
			continue
		}
		o := tree{}
		for k, v := range m {
			if secret && (!allowed.MatchString(k) || isContainer(v)) {
				continue
			}
			o[k] = r.member(k, v, secret)
		}
		out = append(out, o)
	}
	return out
}

func (r reference) annotations(m tree, secret bool) tree {
	out := tree{}
	for k, v := range m {
		s, ok := v.(string)
		switch {
		case k == ContentAnnotation, secret && !ok, k == lastApplied && (secret || r.hasRules()), secret && !r.allowsSecretAnnotation(k):
		case anyGlob(r.config.Annotations, k):
			out[k] = Redacted
		case !ok:
			out[k] = r.value(v, secret)
		case secret && (len(s) > 256 || strings.ContainsAny(s, "{[\n\r") || regexp.MustCompile(`^(H4sI|KLUv/|UEsD|eyJ)`).MatchString(s)):
		case !secret && r.leaksSecret(s):
		default:
			out[k] = v
		}
	}
	return out
}

func (r reference) allowsSecretAnnotation(k string) bool {
	return regexp.MustCompile(`^(artifact|caching|moniker|strategy|traffic)\.spinnaker\.io/|^(meta\.)?helm\.sh/(hook|release-name)$`).MatchString(k) ||
		anyGlob(r.config.SecretAnnotations, k)
}

func (r reference) leaksSecret(s string) bool {
	for range maxEscapeLayers - 1 {
		s = string(unescape(nil, []byte(s)))
	}
	if deeper := string(unescape(nil, []byte(s))); deeper != s {
		return true
	}
	if regexp.MustCompile(`^(H4sI|KLUv/|UEsD)|"Secret(List)?"|kind: Secret`).MatchString(s) {
		return true
	}
	var names []string
	if len(r.config.Annotations) > 0 {
		names = append(names, "annotations")
	}
	if len(r.config.Environment) > 0 {
		names = append(names, "env")
	}
	if r.resource.Kind.Name == "ConfigMap" && len(r.config.ConfigMapKeys) > 0 {
		names = append(names, "data", "binaryData")
	}
	if names == nil {
		return false
	}
	word := strings.Join(names, "|")
	return regexp.MustCompile(`^eyJ|"(` + word + `)"|(` + word + `):[ \n]`).MatchString(s)
}

func (r reference) configMap(name string, v any) any {
	m, ok := v.(tree)
	if !ok {
		return r.value(v, false)
	}
	text := map[string]string{"data": Redacted, "binaryData": RedactedBinary}[name]
	out := tree{}
	for k, v := range m {
		out[k] = r.value(v, false)
		if anyGlob(r.config.ConfigMapKeys, k) {
			out[k] = text
		}
	}
	return out
}

func (r reference) member(name string, v any, secret bool) any {
	if m, ok := v.(tree); ok && name == "annotations" && (secret || len(r.config.Annotations) > 0) {
		return r.annotations(m, secret)
	}
	if list, ok := v.([]any); ok && name == "env" && len(r.config.Environment) > 0 {
		return r.env(list, secret)
	}
	return r.value(v, secret)
}

func (r reference) value(v any, secret bool) any {
	switch t := v.(type) {
	case []any:
		out := []any{}
		for _, e := range t {
			out = append(out, r.value(e, secret))
		}
		return out
	case tree:
		secret = secret || isSecret(t)
		out := tree{}
		for k, v := range t {
			if secret && (k == "data" || k == "stringData") {
				continue
			}
			out[k] = r.member(k, v, secret)
		}
		return out
	}
	return v
}

func (r reference) env(list []any, secret bool) []any {
	out := []any{}
	for _, e := range list {
		m, ok := e.(tree)
		out = append(out, r.value(e, secret))
		if name, hasName := m["name"].(string); ok && hasName && anyGlob(r.config.Environment, name) {
			if _, has := m["value"]; has {
				out[len(out)-1].(tree)["value"] = Redacted
			}
		}
	}
	return out
}

func anyGlob(patterns []string, name string) bool {
	for _, p := range patterns {
		e := strings.NewReplacer(`\*`, `(?s:.*)`, `\?`, `(?s:.)`).Replace(regexp.QuoteMeta(p))
		if regexp.MustCompile(`(?i)^(?:` + e + `)$`).MatchString(name) {
			return true
		}
	}
	return false
}

// check compares the result of Object with the rules: the body with the reference, the header
// and the summary with what encoding/json reads in the body.
func (r reference) check(t testing.TB, raw []byte, o vedette.Object, fields []vedette.ProjectionField) {
	t.Helper()
	body := decode(t, o.Body).(tree)
	if want := r.body(decode(t, raw).(tree)); !reflect.DeepEqual(body, want) {
		w, _ := json.Marshal(want)
		t.Fatalf("%s:\ngot body  %s\nwant body %s", raw, o.Body, w)
	}
	meta, _ := body["metadata"].(tree)
	text := func(m tree, name string) string { s, _ := m[name].(string); return s }
	want := vedette.Object{
		Key:             vedette.Key{Kind: r.resource.Kind, Namespace: text(meta, "namespace"), Name: text(meta, "name")},
		UID:             text(meta, "uid"),
		ResourceVersion: text(meta, "resourceVersion"),
		APIVersion:      text(body, "apiVersion"),
		Labels:          stringMap(meta["labels"], func(string, any) bool { return true }),
		Annotations: stringMap(meta["annotations"], func(k string, v any) bool {
			_, ok := v.(string)
			return ok && isHeaderAnnotation(k)
		}),
		Owner: chooseOwner(meta), Body: o.Body, Summary: o.Summary,
	}
	if at, err := time.Parse(time.RFC3339, text(meta, "creationTimestamp")); err == nil {
		want.Created = at.Unix()
	}
	if !reflect.DeepEqual(o, want) {
		t.Fatalf("%s:\ngot header  %+v\nwant header %+v", raw, o, want)
	}
	checkSummary(t, o, body, fields)
}

func isHeaderAnnotation(k string) bool {
	for _, p := range vedette.HeaderAnnotations {
		if strings.HasPrefix(k, p) {
			return true
		}
	}
	return false
}

func stringMap(v any, keep func(string, any) bool) map[string]string {
	m, _ := v.(tree)
	var out map[string]string
	for k, v := range m {
		if !keep(k, v) {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[k], _ = v.(string)
	}
	return out
}

func chooseOwner(meta tree) vedette.Owner {
	list, _ := meta["ownerReferences"].([]any)
	var chosen tree
	for _, e := range list {
		m, ok := e.(tree)
		if ok && (chosen == nil || m["controller"] == true && chosen["controller"] != true) {
			chosen = m
		}
	}
	if chosen == nil {
		return vedette.Owner{}
	}
	text := func(k string) string { s, _ := chosen[k].(string); return s }
	group, _, grouped := strings.Cut(text("apiVersion"), "/")
	if !grouped {
		group = ""
	}
	return vedette.Owner{Kind: vedette.Kind{Group: group, Name: text("kind")}, Name: text("name"), UID: text("uid")}
}

func checkSummary(t testing.TB, o vedette.Object, body tree, fields []vedette.ProjectionField) {
	t.Helper()
	got := tree{}
	if o.Summary != nil {
		got = decode(t, o.Summary).(tree)
	}
	for _, f := range fields {
		want, found := valueAt(body, strings.Split(f.Path, "."))
		value, present := got[f.Name]
		if present && (!found || !reflect.DeepEqual(value, want)) {
			t.Fatalf("summary of %s: got %s %v (found: %v), want %v", o.Body, f.Name, value, found, want)
		}
		if text, _ := json.Marshal(want); found && !present && len(text) < maxProjectedValue/8 {
			t.Fatalf("summary of %s: got no %s, want %v", o.Body, f.Name, want)
		}
	}
}

// valueAt returns the value at a path without escapes.
func valueAt(v any, path []string) (any, bool) {
	if len(path) == 0 {
		return v, v != nil
	}
	switch t := v.(type) {
	case tree:
		if path[0] == "#" {
			return json.Number(itoa(len(t))), true
		}
		child, ok := t[path[0]]
		if !ok {
			return nil, false
		}
		return valueAt(child, path[1:])
	case []any:
		if path[0] == "#" {
			return json.Number(itoa(len(t))), true
		}
		if path[0] != "*" {
			return nil, false
		}
		out := []any{}
		for _, e := range t {
			found, _ := valueAt(e, path[1:])
			out = append(out, found)
		}
		return out, true
	}
	return nil, false
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

// unique reports whether no object in raw has a member twice.
func unique(raw []byte) bool {
	d := json.NewDecoder(bytes.NewReader(raw))
	type frame struct {
		object bool
		names  map[string]bool
		value  bool // the next token is a value
	}
	var stack []*frame
	for {
		token, err := d.Token()
		if err != nil {
			return err == io.EOF
		}
		if len(stack) > 0 && token != json.Delim('}') && token != json.Delim(']') {
			if top := stack[len(stack)-1]; top.object {
				if name, ok := token.(string); ok && !top.value {
					if top.names[name] {
						return false
					}
					top.names[name] = true
				}
				top.value = !top.value
			}
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			stack = append(stack, &frame{object: token == json.Delim('{'), names: map[string]bool{}})
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
		}
	}
}
