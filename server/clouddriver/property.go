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

// getJobProperties mirrors JobController.getFileContents: what a Job wrote into
// its log for later stages.
func (a *api) getJobProperties(w http.ResponseWriter, r *http.Request, p parts) error {
	at := placeOf(r, p)
	if err := a.mayRead(r, at, p["app"]); err != nil {
		return err
	}
	return a.writeProperties(w, r, at, p["container"], func(ctx context.Context) (string, error) { return a.podToRead(ctx, &at, p["id"]) })
}

// getPodProperties mirrors JobController.getFileContentsFromPod.
func (a *api) getPodProperties(w http.ResponseWriter, r *http.Request, p parts) error {
	at := placeOf(r, p)
	if err := a.mayRead(r, at, p["app"]); err != nil {
		return err
	}
	return a.writeProperties(w, r, at, p["container"], func(context.Context) (string, error) { return p["pod"], nil })
}

// podToRead chooses the pod of a Job that tells its result: the latest that
// succeeded, or else the latest that has started to write.
func (a *api) podToRead(ctx context.Context, at *place, id string) (string, error) {
	job, err := a.job(ctx, *at, id)
	if err != nil {
		return "", err
	}
	pods, err := a.podsOf(ctx, *at, &job)
	if err != nil {
		return "", err
	}
	if len(pods) == 0 {
		return "", vedette.Errorf(vedette.NotFound, "job %s has no pods", job.Name)
	}
	at.location = job.Namespace
	for _, fits := range []func(jobPod) bool{jobPod.succeeded, jobPod.hasStarted} {
		for _, pod := range slices.Backward(pods) {
			if fits(pod) {
				return pod.Name, nil
			}
		}
	}
	return pods[len(pods)-1].Name, nil
}

// logPatience is how long a log may take to be read.
const logPatience = 30 * time.Second

// writeProperties answers with the properties of a log, and with none where it
// can't be had: Orca then looks elsewhere, and asks again.
func (a *api) writeProperties(w http.ResponseWriter, r *http.Request, at place, container string, pod func(context.Context) (string, error)) error {
	ctx, cancel := context.WithTimeout(r.Context(), logPatience)
	defer cancel()
	name, err := pod(ctx)
	var properties map[string]any
	if err == nil {
		properties, err = a.properties(ctx, at, name, container)
	}
	if r.Context().Err() != nil {
		return context.Cause(r.Context())
	}
	if err != nil {
		a.Log.Warn("no properties were found in a log", "account", at.account, "namespace", at.location, "pod", name, "container", container, "error", err)
		properties = map[string]any{}
	}
	return writeJSON(w, r, properties)
}

func (a *api) properties(ctx context.Context, at place, pod, container string) (map[string]any, error) {
	log, err := a.log(ctx, at, pod, container)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return extract(log)
}

// log opens what a container wrote. The caller closes it; it ends with ctx.
func (a *api) log(ctx context.Context, at place, pod, container string) (io.ReadCloser, error) {
	out, err := a.ask(ctx, at, vedette.LogsArgs{Target: vedette.Target{Kind: "Pod", APIVersion: "v1", Namespace: at.location, Name: pod}, Container: container})
	if err == nil && out.Stream == nil {
		err = vedette.Errorf(vedette.Unavailable, "the agent sent no log")
	}
	return out.Stream, err
}

const (
	propertyMarker = "SPINNAKER_PROPERTY_"
	configMarker   = "SPINNAKER_CONFIG_JSON="
	longestLine    = 8 << 20
	mostProperties = 16 << 20 // bytes of all lines that hold some
)

// extract reads the properties that stand in a log, one in a line, and the JSON
// objects, which are merged: the last wins. JSON that can't be read spoils all.
func extract(log io.Reader) (map[string]any, error) {
	found := map[string]any{}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, longestLine)
	for size := 0; lines.Scan(); {
		line := bytes.TrimSpace(lines.Bytes())
		if !bytes.Contains(line, []byte(propertyMarker)) && !bytes.HasPrefix(line, []byte(configMarker)) {
			continue
		}
		if size += len(line); size > mostProperties {
			return nil, vedette.Errorf(vedette.Invalid, "the log's properties have more than %d bytes", mostProperties)
		}
		if text, ok := bytes.CutPrefix(line, []byte(configMarker)); ok {
			if err := merge(found, text); err != nil {
				return nil, err
			}
		}
		left, value, _ := bytes.Cut(line, []byte("="))
		if bytes.Contains(line, []byte(propertyMarker)) && len(value) > 0 {
			name := strings.Replace(strings.TrimSpace(string(left)), propertyMarker, "", 1)
			found[strings.ToLower(name)] = strings.TrimSpace(string(value))
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read a log: %w", err)
	}
	return found, nil
}

func merge(found map[string]any, text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return fmt.Errorf("read the JSON after %s: %w", configMarker, err)
	}
	for name, value := range object {
		found[name] = value
	}
	return nil
}
