package operate

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
)

// checkSteps checks a JSON patch before it is sent, and returns what is to be sent. No
// step may copy, move or test what redaction keeps back: of a Secret that is all of its
// data; of other objects Secrets that they embed, and what rules redact.
func (o *Operator) checkSteps(ctx context.Context, p place, body []byte) ([]byte, error) {
	if p.secret() {
		return secretSteps(body)
	}
	sources, err := sourcesOf(body)
	if err != nil || len(sources) == 0 {
		return body, err
	}
	raw, _, err := o.do(ctx, p, call{})
	if err != nil {
		return nil, err
	}
	hidden, err := o.hiddenIn(p, raw)
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		if slices.ContainsFunc(hidden, s.pointer.touches) {
			return nil, vedette.Errorf(vedette.Invalid, "step %d of the patch can't be carried out, because it could tell a value that is not shown of %s: "+
				"write a value of its own, by add or replace", s.number, p.key())
		}
	}
	return body, nil
}

// source is what a step of a JSON patch reads of the object.
type source struct {
	number  int // of the step, from 1
	pointer pointer
}

// sourcesOf returns what the steps of a patch read. Of steps that are none, the API
// server judges.
func sourcesOf(body []byte) ([]source, error) {
	var steps []map[string]any // a struct would take "FROM" for from, as no API server does
	if err := json.Unmarshal(body, &steps); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the steps of a JSON patch must be objects%s", offset(err))
	}
	var all []source
	for i, s := range steps {
		switch s["op"] {
		case "test":
			all = append(all, source{i + 1, parsePointer(text(s, "path"))})
		case "copy", "move":
			all = append(all, source{i + 1, parsePointer(text(s, "from"))})
		}
	}
	return all, nil
}

// hiddenIn returns where an object holds what redaction keeps back. managedFields hold
// no values.
func (o *Operator) hiddenIn(p place, raw []byte) ([]pointer, error) {
	obj, err := o.redacted(p.Resource, raw)
	if err != nil {
		return nil, err
	}
	var whole, told object
	if err := json.Unmarshal(raw, &whole); err != nil {
		return nil, senseless(p, err)
	}
	if err := json.Unmarshal(obj.Body, &told); err != nil {
		return nil, senseless(p, err)
	}
	if meta, _ := whole["metadata"].(object); meta != nil {
		delete(meta, "managedFields")
	}
	return appendHidden(nil, nil, whole, told), nil
}

// appendHidden appends where a tree differs from what is told of it.
func appendHidden(all []pointer, at pointer, whole, told any) []pointer {
	switch w := whole.(type) {
	case object:
		if t, is := told.(object); is {
			for name, value := range w {
				part, there := t[name]
				if here := append(slices.Clip(at), name); there {
					all = appendHidden(all, here, value, part)
				} else {
					all = append(all, here)
				}
			}
			return all
		}
	case []any:
		if t, is := told.([]any); is && len(t) == len(w) { // nothing is cut from lists
			for i, value := range w {
				all = appendHidden(all, append(slices.Clip(at), strconv.Itoa(i)), value, t[i])
			}
			return all
		}
	}
	if reflect.DeepEqual(whole, told) {
		return all
	}
	return append(all, at)
}

// pointer is a JSON pointer: the names and indexes on the way to a value.
type pointer []string

// parsePointer reads a pointer as API servers do, which pass over what stands before the
// first slash. One without a slash is taken for the whole object.
func parsePointer(text string) pointer {
	_, text, found := strings.Cut(text, "/")
	if !found {
		return nil
	}
	parts := pointer(strings.Split(text, "/"))
	for i, part := range parts {
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
	}
	return parts
}

// touches reports whether one of two values may be the other one, or a part of it.
// Earlier steps may have moved the elements of lists, so that all indexes are alike.
func (p pointer) touches(other pointer) bool {
	for i := range min(len(p), len(other)) {
		if p[i] != other[i] && !(isIndex(p[i]) && isIndex(other[i])) {
			return false
		}
	}
	return true
}

func isIndex(part string) bool {
	_, err := strconv.Atoi(part)
	return err == nil || part == "-"
}
