package clouddriver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

// getJobProperties mirrors JobController.getFileContents. It returns the properties that a Job
// wrote to its log for later stages.
func (a *api) getJobProperties(w http.ResponseWriter, r *http.Request, p pathParams) error {
	scope := newRequestScope(r, p)
	if err := a.checkJobAccess(r, scope, p["app"]); err != nil {
		return err
	}
	return a.writeProperties(w, r, scope, p["container"], func(ctx context.Context) (string, error) {
		return a.selectPropertiesPod(ctx, &scope, p["id"])
	})
}

// getPodProperties mirrors JobController.getFileContentsFromPod.
func (a *api) getPodProperties(w http.ResponseWriter, r *http.Request, p pathParams) error {
	scope := newRequestScope(r, p)
	if err := a.checkJobAccess(r, scope, p["app"]); err != nil {
		return err
	}
	return a.writeProperties(w, r, scope, p["container"], func(context.Context) (string, error) { return p["pod"], nil })
}

// selectPropertiesPod returns the pod whose log has the properties: the latest that succeeded,
// or else the latest that started.
func (a *api) selectPropertiesPod(ctx context.Context, scope *requestScope, id string) (string, error) {
	job, err := a.findJob(ctx, *scope, id)
	if err != nil {
		return "", err
	}
	pods, err := a.listJobPods(ctx, *scope, &job)
	if err != nil {
		return "", err
	}
	if len(pods) == 0 {
		return "", vedette.Errorf(vedette.NotFound, "job %s has no pods", job.Name)
	}
	scope.location = job.Namespace
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
func (a *api) writeProperties(w http.ResponseWriter, r *http.Request, scope requestScope, container string,
	pod func(context.Context) (string, error)) error {
	ctx, cancel := context.WithTimeout(r.Context(), logTimeout)
	defer cancel()
	name, err := pod(ctx)
	var properties map[string]any
	if err == nil {
		properties, err = a.properties(ctx, scope, name, container)
	}
	if r.Context().Err() != nil {
		return context.Cause(r.Context())
	}
	if err != nil {
		a.Log.WarnContext(r.Context(), "cannot read properties from a log", "account", scope.account, "namespace", scope.location,
			"pod", name, "container", container, "error", err)
		properties = map[string]any{}
	}
	return writeJSON(w, r, properties)
}

func (a *api) properties(ctx context.Context, scope requestScope, pod, container string) (map[string]any, error) {
	log, err := a.openLog(ctx, scope, pod, container)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return parseProperties(log)
}

// openLog opens the log of a container. The caller must close it. The log ends when ctx does.
func (a *api) openLog(ctx context.Context, scope requestScope, pod, container string) (io.ReadCloser, error) {
	out, err := a.doOperation(ctx, scope,
		vedette.LogsArgs{Target: vedette.Target{Kind: "Pod", APIVersion: "v1", Namespace: scope.location, Name: pod}, Container: container})
	if err == nil && out.Stream == nil {
		err = vedette.Errorf(vedette.Unavailable, "the agent sent no log")
	}
	return out.Stream, err
}

const (
	propertyMarker     = "SPINNAKER_PROPERTY_"
	configMarker       = "SPINNAKER_CONFIG_JSON="
	maxLineBytes       = 8 << 20
	maxPropertiesBytes = 16 << 20 // total size of lines with properties
)

// parseProperties reads the properties in a log. Each is on a line of its own, either a name
// and a value or a JSON object; the last value of a name wins. As in Clouddriver, one invalid
// JSON object invalidates all properties.
func parseProperties(log io.Reader) (map[string]any, error) {
	properties := map[string]any{}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, maxLineBytes)
	for size := 0; lines.Scan(); {
		line := bytes.TrimSpace(lines.Bytes())
		if !bytes.Contains(line, []byte(propertyMarker)) && !bytes.HasPrefix(line, []byte(configMarker)) {
			continue
		}
		size += len(line)
		if size > maxPropertiesBytes {
			return nil, vedette.Errorf(vedette.Invalid, "the properties in the log are larger than %d bytes", maxPropertiesBytes)
		}
		if text, ok := bytes.CutPrefix(line, []byte(configMarker)); ok {
			if err := mergeJSON(properties, text); err != nil {
				return nil, err
			}
		}
		key, value, _ := bytes.Cut(line, []byte("="))
		if bytes.Contains(line, []byte(propertyMarker)) && len(value) > 0 {
			name := strings.Replace(strings.TrimSpace(string(key)), propertyMarker, "", 1)
			properties[strings.ToLower(name)] = strings.TrimSpace(string(value))
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read a log: %w", err)
	}
	return properties, nil
}

func mergeJSON(properties map[string]any, text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return fmt.Errorf("read the JSON after %s: %w", configMarker, err)
	}
	for name, value := range object {
		properties[name] = value
	}
	return nil
}
