package manifests

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/rest"
)

// getJobProperties mirrors JobController.getFileContents. It returns the properties that a Job
// wrote to its log for later stages.
func (a *api) getJobProperties(w http.ResponseWriter, r *http.Request, p web.Params) error {
	scope := web.NewScope(r, p)
	if err := a.checkJobAccess(r, scope, p["app"]); err != nil {
		return err
	}
	return a.writeProperties(w, r, &scope, p["container"], func(ctx context.Context, held *web.Memory) (string, error) {
		return a.selectPropertiesPod(ctx, &scope, held, p["id"])
	})
}

// getPodProperties mirrors JobController.getFileContentsFromPod.
func (a *api) getPodProperties(w http.ResponseWriter, r *http.Request, p web.Params) error {
	scope := web.NewScope(r, p)
	if err := a.checkJobAccess(r, scope, p["app"]); err != nil {
		return err
	}
	return a.writeProperties(w, r, &scope, p["container"], func(context.Context, *web.Memory) (string, error) { return p["pod"], nil })
}

// selectPropertiesPod returns the pod whose log has the properties: the latest that succeeded,
// or else the latest that started.
func (a *api) selectPropertiesPod(ctx context.Context, scope *web.Scope, held *web.Memory, id string) (string, error) {
	job, err := a.findJob(ctx, *scope, id)
	if err != nil {
		return "", err
	}
	pods, err := a.listJobPods(ctx, *scope, held, &job)
	if err != nil {
		return "", err
	}
	if len(pods) == 0 {
		return "", vedette.Errorf(vedette.NotFound, "job %s has no pods", job.Name)
	}
	scope.Location = job.Namespace
	for _, matches := range []func(jobPod) bool{jobPod.hasSucceeded, jobPod.hasStarted} {
		for _, pod := range slices.Backward(pods) {
			if matches(pod) {
				return pod.Name, nil
			}
		}
	}
	return pods[len(pods)-1].Name, nil
}

// logTimeout bounds reading a log.
const logTimeout = 30 * time.Second

// writeProperties writes the properties in a log. If the log cannot be read, it writes none,
// because Orca then tries other pods and retries.
func (a *api) writeProperties(w http.ResponseWriter, r *http.Request, scope *web.Scope, container string,
	pod func(context.Context, *web.Memory) (string, error)) error {
	ctx, cancel := context.WithTimeout(r.Context(), logTimeout)
	defer cancel()
	held := web.NewMemory(a.ReadLimiter, scope.LimitKey)
	defer held.Release()
	name, err := pod(ctx, held)
	properties := map[string]json.RawMessage{}
	if err == nil {
		properties, err = a.properties(ctx, *scope, held, logOf{name, container})
	}
	if r.Context().Err() != nil {
		return context.Cause(r.Context())
	}
	if err != nil {
		a.Log.WarnContext(r.Context(), "cannot read properties from a log", "account", scope.Account, "namespace", scope.Location,
			"pod", name, "container", container, "error", err)
		properties = map[string]json.RawMessage{}
	}
	return rest.WriteJSON(w, r, properties)
}

type logOf struct{ pod, container string }

func (a *api) properties(ctx context.Context, scope web.Scope, held *web.Memory, of logOf) (map[string]json.RawMessage, error) {
	log, err := a.openLog(ctx, scope, of.pod, of.container)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return parseProperties(log, func(bytes int) error { return held.Grow(ctx, bytes) })
}

// openLog opens the log of a container. The caller must close it. The log ends when ctx does.
func (a *api) openLog(ctx context.Context, scope web.Scope, pod, container string) (io.ReadCloser, error) {
	out, err := a.doOperation(ctx, scope,
		vedette.LogsArgs{Target: vedette.Target{Kind: "Pod", APIVersion: "v1", Namespace: scope.Location, Name: pod}, Container: container})
	if err == nil && out.Stream == nil {
		err = vedette.Errorf(vedette.Unavailable, "the agent sent no log")
	}
	return out.Stream, err
}

const (
	propertyMarker     = "SPINNAKER_PROPERTY_"
	configMarker       = "SPINNAKER_CONFIG_JSON="
	maxLineBytes       = 8 << 20
	maxPropertiesBytes = 16 << 20 // memory that properties take, not the size of their lines
	propertyBytes      = 128      // memory that a property takes besides its name and value
	copies             = 4        // of properties: themselves, and the response, whose buffer grows
)

// propertyReader collects the properties of a log.
type propertyReader struct {
	properties map[string]json.RawMessage
	size       int
	grow       func(size int) error // is called before properties take memory
}

// parseProperties reads the properties in a log. Each is on a line of its own, either a name
// and a value or a JSON object; the last value of a name wins. As in Clouddriver, one invalid
// JSON object invalidates all properties. Values stay JSON, because short ones would take a hundred times
// more memory.
func parseProperties(log io.Reader, grow func(size int) error) (map[string]json.RawMessage, error) {
	p := propertyReader{properties: map[string]json.RawMessage{}, grow: grow}
	lines := bufio.NewScanner(&paidLines{log: log, grow: grow})
	lines.Buffer(nil, maxLineBytes)
	for lines.Scan() {
		if err := p.addLine(bytes.TrimSpace(lines.Bytes())); err != nil {
			return nil, err
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read a log: %w", err)
	}
	return p.properties, nil
}

func (p *propertyReader) addLine(line []byte) error {
	if text, ok := bytes.CutPrefix(line, []byte(configMarker)); ok {
		if err := p.addJSON(text); err != nil {
			return err
		}
	}
	key, value, _ := bytes.Cut(line, []byte("="))
	if !bytes.Contains(line, []byte(propertyMarker)) || len(value) == 0 {
		return nil
	}
	if err := p.reserve(2*web.JSONBytes(string(line)) + propertyBytes); err != nil {
		return err
	}
	name := strings.Replace(strings.TrimSpace(string(key)), propertyMarker, "", 1)
	encoded, err := rest.Encode(strings.TrimSpace(string(value)))
	if err != nil {
		return err
	}
	p.properties[strings.ToLower(name)] = bytes.TrimSpace(encoded)
	return nil
}

// addJSON adds the members of the object that a text begins with. Names that occur twice are accepted, as
// in Clouddriver: to find them takes memory, and nobody decides anything by them.
func (p *propertyReader) addJSON(text []byte) error {
	if !utf8.Valid(text) {
		if err := p.grow(2 * len(text)); err != nil { // U+FFFD has three bytes, and one stands for all that follow one another
			return err
		}
		text = bytes.ToValidUTF8(text, []byte("\uFFFD")) // containers write any bytes
	}
	members := 0
	count := func(string, jsontext.Value) { members++ }
	if err := eachMember(text, count); err != nil {
		return fmt.Errorf("read the JSON after %s: %w", configMarker, err)
	}
	if err := p.reserve(len(text) + members*propertyBytes); err != nil {
		return err
	}
	return eachMember(text, func(name string, value jsontext.Value) { p.properties[name] = json.RawMessage(bytes.Clone(value)) })
}

// eachMember calls do for each member of the object that a text begins with. Null has none.
func eachMember(text []byte, do func(name string, value jsontext.Value)) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
	start, err := d.ReadToken()
	if err != nil || start.Kind() == 'n' {
		return err
	}
	if start.Kind() != '{' {
		return errors.New("it is not an object")
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		key := name.String() // the token is valid until the next call
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		do(key, value)
	}
	_, err = d.ReadToken()
	return err
}

func (p *propertyReader) reserve(size int) error {
	if p.size += size; p.size > maxPropertiesBytes {
		return vedette.Errorf(vedette.Invalid, "the properties in the log take more than %d MiB of memory", maxPropertiesBytes>>20)
	}
	return p.grow(copies * size)
}

// paidLines is a log that pays for the buffer of a line while it arrives: its end may be far, or never come.
type paidLines struct {
	log  io.Reader
	grow func(size int) error
	line int // length of the line so far
	paid int // length of the line that the buffer was paid for
}

// Read implements io.Reader.
func (l *paidLines) Read(p []byte) (int, error) {
	n, err := l.log.Read(p)
	l.line += n
	if end := bytes.LastIndexByte(p[:n], '\n'); end >= 0 {
		l.line = n - end - 1
	}
	if l.line > l.paid {
		if err := l.grow(2 * (l.line - l.paid)); err != nil { // a buffer grows by doubling
			return 0, err
		}
		l.paid = l.line
	}
	return n, err
}
