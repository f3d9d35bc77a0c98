package logging

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// scaleAgentHandler writes lines in the form of the Scale Agent, which used logrus: levels in lower case, times
// in quotes, fields in the order of their names, and its names for them. So filters and alerts that were made for it
// go on matching.
type scaleAgentHandler struct {
	out     io.Writer
	mu      *sync.Mutex // of out
	level   slog.Leveler
	replace func(groups []string, a slog.Attr) slog.Attr
	encode  func(line scaleAgentLine) []byte
	fields  map[string]slog.Value // of WithAttrs; not changed anymore
	groups  []string
}

type scaleAgentLine struct {
	time           time.Time
	level, message string
	fields         map[string]slog.Value
}

// scaleAgentNames are the Scale Agent's names for attributes of ours. A feed becomes three fields.
var scaleAgentNames = map[string]string{
	"agent": "agentId", "operation": "operationId", "verb": "operationType", "namespace": "operationNamespace",
}

// scaleAgentTypes are the Scale Agent's names of verbs; others keep theirs, with a capital letter.
var scaleAgentTypes = map[string]string{"apply": "Deploy", "history": "RevisionHistory", "undo": "Rollback", "discover": "Discovery"}

func (h *scaleAgentHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.level.Level()
}

func (h *scaleAgentHandler) Handle(_ context.Context, r slog.Record) error {
	line := scaleAgentLine{time: r.Time, level: scaleAgentLevel(r.Level), message: r.Message, fields: maps.Clone(h.fields)}
	if line.fields == nil {
		line.fields = map[string]slog.Value{}
	}
	if at := h.replace(nil, slog.Time(slog.TimeKey, r.Time)); at.Value.Kind() == slog.KindTime {
		line.time = at.Value.Time()
	}
	r.Attrs(func(a slog.Attr) bool {
		h.add(line.fields, h.groups, a)
		return true
	})
	encoded := h.encode(line)
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.out.Write(encoded)
	return err
}

func (h *scaleAgentHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.fields = maps.Clone(h.fields)
	if with.fields == nil {
		with.fields = map[string]slog.Value{}
	}
	for _, a := range attrs {
		h.add(with.fields, h.groups, a)
	}
	return &with
}

func (h *scaleAgentHandler) WithGroup(name string) slog.Handler {
	with := *h
	with.groups = append(slices.Clone(h.groups), name)
	return &with
}

// add adds an attribute under the Scale Agent's names.
func (h *scaleAgentHandler) add(fields map[string]slog.Value, groups []string, a slog.Attr) {
	a.Value = a.Value.Resolve()
	if a.Value.Kind() == slog.KindGroup {
		if a.Key != "" {
			groups = append(slices.Clone(groups), a.Key)
		}
		for _, inner := range a.Value.Group() {
			h.add(fields, groups, inner)
		}
		return
	}
	a = h.replace(groups, a)
	if a.Key == "" {
		return
	}
	if len(groups) > 0 {
		fields[strings.Join(groups, ".")+"."+a.Key] = a.Value
		return
	}
	switch a.Key {
	case "feed":
		addFeed(fields, a.Value.String())
	case "verb":
		fields[scaleAgentNames[a.Key]] = slog.StringValue(operationType(a.Value.String()))
	case slog.TimeKey, slog.LevelKey, slog.MessageKey: // as logrus does
		fields["fields."+a.Key] = a.Value
	default:
		name := a.Key
		if theirs, ok := scaleAgentNames[name]; ok {
			name = theirs
		}
		fields[name] = a.Value
	}
}

// addFeed adds the parts of "Deployment.apps/shop".
func addFeed(fields map[string]slog.Value, feed string) {
	kind, namespace, _ := strings.Cut(feed, "/")
	name, group, _ := strings.Cut(kind, ".")
	fields["kind"] = slog.StringValue(name)
	if group != "" {
		fields["group"] = slog.StringValue(group)
	}
	if namespace != "" {
		fields["watchedNamespace"] = slog.StringValue(namespace)
	}
}

func operationType(verb string) string {
	if theirs, ok := scaleAgentTypes[verb]; ok {
		return theirs
	}
	if verb == "" {
		return ""
	}
	return strings.ToUpper(verb[:1]) + verb[1:]
}

func scaleAgentLevel(level slog.Level) string {
	switch {
	case level <= LevelTrace:
		return "trace"
	case level < slog.LevelInfo:
		return "debug"
	case level < slog.LevelWarn:
		return "info"
	case level < slog.LevelError:
		return "warning"
	case level < LevelFatal:
		return "error"
	}
	return "fatal"
}

// encodeText writes a line as logrus writes text: time="…" level=info msg="…" account=prod.
func (l scaleAgentLine) encodeText() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "time=%q level=%s msg=%s", l.time.Format(time.RFC3339), l.level, quoteField(l.message))
	for _, key := range slices.Sorted(maps.Keys(l.fields)) {
		fmt.Fprintf(&b, " %s=%s", fieldName(key), quoteField(fieldText(l.fields[key])))
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// fieldName returns a name that cannot be taken for another one, because logging.fields has names of users.
func fieldName(key string) string {
	if needsQuotes(key) {
		return strconv.Quote(key)
	}
	return key
}

func quoteField(text string) string {
	if needsQuotes(text) {
		return strconv.Quote(text)
	}
	return text
}

func needsQuotes(text string) bool {
	return text == "" || strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._/@^+", r)
	})
}

func fieldText(value slog.Value) string {
	if value.Kind() == slog.KindAny {
		return fmt.Sprintf("%+v", value.Any())
	}
	if value.Kind() == slog.KindTime {
		return value.Time().Format(time.RFC3339)
	}
	return value.String()
}

// encodeJSON writes a line as logrus writes JSON: one object with all names in order.
func (l scaleAgentLine) encodeJSON() []byte {
	object := map[string]any{"time": l.time.Format(time.RFC3339), "level": l.level, "msg": l.message}
	for key, value := range l.fields {
		object[key] = fieldJSON(value)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object); err == nil {
		return b.Bytes()
	}
	for key, value := range l.fields { // something that JSON cannot express
		object[key] = fieldText(value)
	}
	b.Reset()
	_ = encoder.Encode(object) // texts can be encoded
	return b.Bytes()
}

func fieldJSON(value slog.Value) any {
	switch value.Kind() {
	case slog.KindBool, slog.KindInt64, slog.KindUint64, slog.KindFloat64:
		return value.Any()
	case slog.KindAny:
		switch v := value.Any().(type) {
		case error, fmt.Stringer:
			return fmt.Sprint(v) // which may be a nil pointer in an interface
		case []string:
			return v
		}
	}
	return fieldText(value)
}
