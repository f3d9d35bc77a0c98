package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

const (
	// taskTimeout is how long a task may take. The longest deletes a Deployment with its Pods.
	taskTimeout = 2 * time.Minute
	// readTimeout is how long a read may take until it answers as recorded: controllers need a while.
	readTimeout  = 30 * time.Second
	pollInterval = 100 * time.Millisecond
)

// Orca sends what Orca sent while it ran pipelines, to a server whose account prod is an empty
// cluster. calls has a line for each request, pipelines one for each pipeline and how its tasks ended.
func Orca(ctx context.Context, url string, calls, pipelines io.Reader) ([]Check, error) {
	recorded, err := readCalls(calls)
	if err != nil {
		return nil, fmt.Errorf("read the calls: %w", err)
	}
	ended, err := readEnds(pipelines)
	if err != nil {
		return nil, fmt.Errorf("read the pipelines: %w", err)
	}
	o := &orca{session: newSession(url), ends: ended, names: map[string]string{}}
	for _, c := range recorded {
		if strings.HasPrefix(c.Path, "/task/") {
			continue // we poll for our own tasks
		}
		check, err := o.replay(ctx, c)
		if err != nil {
			return o.checks, fmt.Errorf("%s %s: %w", c.Method, c.Path, err)
		}
		o.checks = append(o.checks, check)
	}
	return o.checks, nil
}

type orca struct {
	*session
	ends   ends
	names  map[string]string // what Kubernetes generated this time, by the fixed part of the name
	checks []Check
}

func (o *orca) replay(ctx context.Context, c call) (Check, error) {
	if c.Method == "POST" {
		return o.operate(ctx, c)
	}
	if c.Method != "GET" {
		r, err := o.send(ctx, c.Method, c.Path, "tester", c.Request)
		return Check{Request: c.Method + " " + c.Path, Want: fmt.Sprint(c.Status), Got: fmt.Sprint(r.status)}, err
	}
	return o.read(ctx, c)
}

// operate submits operations, and waits until their task has ended.
func (o *orca) operate(ctx context.Context, c call) (Check, error) {
	check := Check{Request: "POST " + c.operation(), Want: fmt.Sprint(c.Status)}
	succeeded, isKnown := false, false
	if c.Status == 200 {
		succeeded, isKnown = o.ends.next(c.operation())
		check.Want += ", " + endText(succeeded)
	}
	switch {
	case !json.Valid([]byte(c.Request)):
		check.Skipped = "the recorded request is cut"
		return check, nil
	case c.Status == 200 && !isKnown:
		check.Skipped = "the recording does not tell how the task ended"
		return check, nil
	}
	r, err := o.send(ctx, c.Method, c.Path, "tester", c.Request)
	if err != nil {
		return check, err
	}
	check.Got = fmt.Sprint(r.status)
	if r.status != 200 {
		return check, nil
	}
	var submitted struct{ ID string }
	if err := json.Unmarshal(r.body, &submitted); err != nil || submitted.ID == "" {
		check.Got += fmt.Sprintf(" without an id: %.200s", r.body)
		return check, nil
	}
	t, err := o.awaitTask(ctx, submitted.ID)
	if err != nil {
		return check, err
	}
	o.learnNames(t)
	check.Got += ", " + endText(!t.Status.Failed)
	if check.Got != check.Want {
		check.Got += ": " + t.Status.Status
	}
	return check, nil
}

func endText(succeeded bool) string {
	if succeeded {
		return "the task succeeded"
	}
	return "the task failed"
}

// task is the part of a task that is checked.
type task struct {
	Status struct {
		Completed, Failed bool
		Status            string
	}
	ResultObjects []struct {
		DeployedNamesByLocation  map[string][]string
		ManifestNamesByNamespace map[string][]string
	}
}

func (o *orca) awaitTask(ctx context.Context, id string) (t task, err error) {
	ctx, cancel := context.WithTimeout(ctx, taskTimeout)
	defer cancel()
	for {
		r, err := o.send(ctx, "GET", "/task/"+id, "tester", "")
		if err != nil {
			return t, err
		}
		if err := json.Unmarshal(r.body, &t); err != nil || r.status != 200 {
			return t, fmt.Errorf("poll task %s: got status %d: %.200s", id, r.status, r.body)
		}
		if t.Status.Completed {
			return t, nil
		}
		if err := pause(ctx); err != nil {
			return t, fmt.Errorf("wait for task %s: %w", id, err)
		}
	}
}

func pause(ctx context.Context) error {
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

var generatedName = regexp.MustCompile(`\b([a-z0-9.-]*-)([a-z0-9]{5})\b`)

// learnNames notes generated names of what a task deployed.
func (o *orca) learnNames(t task) {
	for _, result := range t.ResultObjects {
		for _, byLocation := range []map[string][]string{result.DeployedNamesByLocation, result.ManifestNamesByNamespace} {
			for _, names := range byLocation {
				for _, name := range names {
					o.learn(name)
				}
			}
		}
	}
}

func (o *orca) learn(text string) {
	for _, m := range generatedName.FindAllStringSubmatch(text, -1) {
		o.names[m[1]] = m[2]
	}
}

// withOwnNames replaces generated names of the recording by those of this run.
func (o *orca) withOwnNames(path string) string {
	words := strings.ReplaceAll(path, "%20", " ")
	words = generatedName.ReplaceAllStringFunc(words, func(name string) string {
		m := generatedName.FindStringSubmatch(name)
		if own, known := o.names[m[1]]; known {
			return m[1] + own
		}
		return name
	})
	return strings.ReplaceAll(words, " ", "%20")
}

// read asks until the answer is as recorded, because what an operation changed shows after
// controllers have seen it.
func (o *orca) read(ctx context.Context, c call) (Check, error) {
	check := Check{Request: "GET " + c.Path, Want: fmt.Sprint(c.Status)}
	if c.wasNotServed() {
		check.Skipped = "the recorded server did not have the endpoint"
		return check, nil
	}
	waitCtx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	for {
		r, err := o.send(waitCtx, "GET", o.withOwnNames(c.Path), "tester", "")
		if err != nil && (waitCtx.Err() == nil || ctx.Err() != nil) {
			return check, err
		}
		if err == nil {
			check.Got = fmt.Sprint(r.status)
			if problem := shapeProblem(c.Path, r); problem != "" {
				check.Got += ", " + problem
			}
		}
		if check.IsOK() {
			o.learnPods(r.body)
			return check, nil
		}
		if err := pause(waitCtx); err != nil {
			return check, errors.Join(ctx.Err())
		}
	}
}

// learnPods notes the names of a Job's Pods.
func (o *orca) learnPods(body []byte) {
	var job struct{ Pods []struct{ Name string } }
	if json.Unmarshal(body, &job) == nil {
		for _, pod := range job.Pods {
			o.learn(pod.Name)
		}
	}
}

// fieldsOf are the fields that Orca reads of an answer.
var fieldsOf = map[string][]string{
	"manifests": {"account", "name", "location", "moniker", "manifest", "status", "artifacts", "events", "warnings", "metrics"},
	"jobs":      {"name", "account", "location", "provider", "createdTime", "jobState", "pods"},
}

// shapeProblem returns what is missing in a manifest or a job, or "".
func shapeProblem(path string, r response) string {
	segments := strings.Split(strings.Trim(strings.Split(path, "?")[0], "/"), "/")
	kind := segments[0]
	if len(segments) == 6 && segments[2] == "jobs" {
		kind = "jobs"
	}
	fields := fieldsOf[kind]
	if r.status != 200 || fields == nil || strings.Contains(path, "/cluster/") {
		return ""
	}
	var tree map[string]json.RawMessage
	if err := json.Unmarshal(r.body, &tree); err != nil {
		return "no JSON object: " + err.Error()
	}
	var missing []string
	for _, field := range fields {
		if tree[field] == nil {
			missing = append(missing, field)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "without " + strings.Join(missing, ", ")
}
