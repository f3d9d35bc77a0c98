package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/vedette-io/vedette/test/controlplane"
)

const (
	taskTimeout   = 3 * time.Minute
	effectTimeout = 2 * time.Minute
)

// pipelineName is the pipeline that each state runs.
const pipelineName = "Deploy and change"

// actions returns the actions, each with its effect in the cluster, and then pages that show what was done. Each state has an
// application of its own for them. whileRunning is called while a pipeline runs.
func (a *app) actions(whileRunning func(p *page)) []step {
	web, stuck := a.object("/apis/apps/v1", "deployments", "web"), a.object("/apis/apps/v1", "deployments", "stuck")
	apiNew, apiOld := a.object("/apis/apps/v1", "replicasets", "api-v001"), a.object("/apis/apps/v1", "replicasets", "api-v000")
	act := func(kind, name, action string, prepare func(*page), check func(*page)) func(*page) {
		return func(p *page) {
			a.menu(p, kind, name, action)
			if prepare != nil {
				prepare(p)
			}
			submit(p)
			check(p)
		}
	}
	badEdit := func(old, changed, message string) func(*page) {
		return func(p *page) {
			a.menu(p, "serverGroupManager", "deployment stuck", "Edit")
			p.edit(old, changed)
			refused(message)(p)
		}
	}
	return []step{
		{name: "scale", isAction: true, do: act("serverGroupManager", "deployment web", "Scale", func(p *page) { p.fill(".modal-dialog input[type=number]", "4") },
			effect(web, "has 4 ready replicas", func(o controlplane.Object) bool { return at(o, "status", "readyReplicas") == "4" }))},
		{name: "restart", isAction: true, do: act("serverGroupManager", "deployment web", "Rolling Restart", nil,
			effect(web, "is restarted", func(o controlplane.Object) bool {
				return at(o, "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt") != ""
			}))},
		{name: "undo", isAction: true, do: act("serverGroupManager", "deployment web", "Undo Rollout", func(p *page) { p.choose(".modal-dialog select", "v001") },
			effect(web, "has the first image", func(o controlplane.Object) bool { return strings.HasSuffix(image(o), "/web:1.0") }))},
		{name: "disable", isAction: true, do: act("serverGroup", "replicaSet api-v001", "Disable", nil,
			effect(apiNew, "gets no traffic", func(o controlplane.Object) bool {
				return at(o, "spec", "template", "metadata", "labels", "serving") == ""
			}))},
		{name: "enable", isAction: true, do: act("serverGroup", "replicaSet api-v001", "Enable", nil,
			effect(apiNew, "gets traffic", func(o controlplane.Object) bool {
				return at(o, "spec", "template", "metadata", "labels", "serving") == "yes"
			}))},
		{name: "delete", isAction: true, do: act("serverGroup", "replicaSet api-v000", "Delete", nil, gone(apiOld))},
		{name: "edit-without-number", isAction: true, do: badEdit("replicas: 2", "replicas: many", "replicas")},
		{name: "edit-immutable-selector", isAction: true, do: badEdit("matchLabels:\n      app: stuck", "matchLabels:\n      app: other", "field is immutable")},
		{name: "edit-unknown-kind", isAction: true, do: badEdit("kind: Deployment", "kind: Deploiment", "Deploiment")},
		{name: "edit-unknown-namespace", isAction: true, do: badEdit("  namespace: "+a.name, "  namespace: nowhere", "nowhere")},
		{name: "edit", isAction: true, do: act("serverGroupManager", "deployment stuck", "Edit",
			func(p *page) { p.edit("/stuck:1", "/stuck:2", "vedette.io/pending: 'true'", "edited: 'true'") },
			effect(stuck, "has the new image and is ready", func(o controlplane.Object) bool {
				return strings.HasSuffix(image(o), "/stuck:2") && at(o, "status", "readyReplicas") == "2"
			}))},
		{name: "deploy", isAction: true, do: a.deploy},
		{name: "pipeline", isAction: true, do: func(p *page) { a.pipeline(p, whileRunning) }},
		{name: "clusters-after-actions", do: func(p *page) { p.open(a.path("clusters")) }},
		{name: "tasks", do: func(p *page) { p.open(a.path("tasks")) }},
		{name: "task", do: func(p *page) {
			p.open(a.path("tasks"))
			p.click(".task-name, .clickable", "Deploy manifest")
			p.settle()
		}},
		{name: "pipelines", do: func(p *page) { p.open(a.path("executions")) }},
		{name: "pipeline-stage", do: func(p *page) {
			p.open(a.path("executions"))
			p.click(".execution-marker", "")
			p.settle()
		}},
	}
}

// submit submits a dialog, and waits until its task has succeeded.
func submit(p *page) {
	if text, hasFailed := p.submitted(); hasFailed {
		p.err = fmt.Errorf("the task has failed: %s", text)
	}
}

// refused returns a function that submits a dialog, and waits until its task has failed with a message that contains a text.
func refused(want string) func(*page) {
	return func(p *page) {
		text, hasFailed := p.submitted()
		switch {
		case p.err != nil:
		case !hasFailed:
			p.err = errors.New("the task has succeeded, and should have failed")
		case !strings.Contains(text, want):
			p.err = fmt.Errorf("the task has failed without %q: %s", want, text)
		}
	}
}

// submitted submits a dialog, waits until its task has ended, and returns what the dialog shows then.
func (p *page) submitted() (text string, hasFailed bool) {
	p.click(".modal-dialog .modal-footer button.btn-primary", "")
	p.poll("the task to end", taskTimeout, func() (bool, error) {
		err := p.evaluate(`() => document.querySelector('.modal-dialog')?.innerText ?? ''`, &text)
		hasFailed = strings.Contains(text, "Go back and try to fix this")
		return err == nil && (hasFailed || text == "" || strings.Contains(text, "Operation succeeded!")), err
	})
	return text, hasFailed
}

// deploy deploys a manifest that is typed.
func (a *app) deploy(p *page) {
	p.open(a.path("clusters"))
	p.click("button", "Create Server Group")
	p.edit("", fmt.Sprintf(deployed, a.name))
	submit(p)
	effect(a.object("/apis/apps/v1", "deployments", "typed"), "is ready", func(o controlplane.Object) bool {
		return at(o, "status", "readyReplicas") == "1"
	})(p)
}

const deployed = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: typed
  namespace: %s
spec:
  replicas: 1
  selector: {matchLabels: {app: typed}}
  template:
    metadata: {labels: {app: typed}}
    spec: {containers: [{name: main, image: "registry.example.com/typed:1"}]}
`

// pipeline saves a pipeline, and runs it from Deck.
func (a *app) pipeline(p *page, whileRunning func(*page)) {
	if p.err == nil {
		p.err = post(p.ctx, p.deck+gatePath+"/pipelines", a.pipelineConfig(), nil)
	}
	p.open(a.path("executions"))
	p.click(".execution-group-actions *", "Start Manual Execution")
	p.await(".modal-dialog", "")
	p.settle()
	p.click(".modal-dialog button", "Run")
	p.await(".execution", "RUNNING")
	whileRunning(p)
	p.poll("the pipeline to succeed", taskTimeout, func() (bool, error) {
		var executions []struct{ Status string }
		err := get(p.ctx, p.deck+gatePath+a.path("pipelines?limit=1"), &executions)
		if err == nil && len(executions) == 1 && (executions[0].Status == "TERMINAL" || executions[0].Status == "CANCELED") {
			p.err = fmt.Errorf("the pipeline ended as %s", executions[0].Status)
			return true, nil
		}
		return err == nil && len(executions) == 1 && executions[0].Status == "SUCCEEDED", err
	})
	effect(a.object("/apis/apps/v1", "deployments", "piped"), "has 3 ready replicas, and the label of the patch", func(o controlplane.Object) bool {
		return at(o, "status", "readyReplicas") == "3" && at(o, "metadata", "labels", "patched") == "yes"
	})(p)
	gone(a.object("/apis/batch/v1", "cronjobs", "report"))(p)
	p.poll("Gate to show the new Deployment, and no longer the CronJob", effectTimeout, func() (bool, error) {
		var groups []struct {
			Name      string
			Instances []any
		}
		err := get(p.ctx, p.deck+gatePath+a.path("serverGroups"), &groups)
		hasDeployment, hasCronJob := false, false
		for _, g := range groups {
			hasDeployment = hasDeployment || strings.HasPrefix(g.Name, "replicaSet piped-") && len(g.Instances) == 3
			hasCronJob = hasCronJob || g.Name == "cronJob report"
		}
		return hasDeployment && !hasCronJob, err
	})
}

func (a *app) pipelineConfig() map[string]any {
	type tree = map[string]any
	stages := []tree{
		{"type": "deployManifest", "source": "text", "moniker": tree{"app": a.name}, "skipExpressionEvaluation": false,
			"trafficManagement": tree{"enabled": false, "options": tree{"enableTraffic": false, "services": []string{}}},
			"manifests": []tree{
				{"apiVersion": "v1", "kind": "ConfigMap", "metadata": tree{"name": "words", "namespace": a.name}, "data": tree{"word": "yes"}},
				{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": tree{"name": "piped", "namespace": a.name}, "spec": tree{
					"replicas": 2, "selector": tree{"matchLabels": tree{"app": "piped"}}, "template": tree{
						"metadata": tree{"labels": tree{"app": "piped"}},
						"spec": tree{"containers": []tree{{"name": "main", "image": "registry.example.com/piped:1",
							"envFrom": []tree{{"configMapRef": tree{"name": "words"}}}}}}}}}}},
		{"type": "scaleManifest", "manifestName": "deployment piped", "kind": "deployment", "mode": "static", "replicas": "3"},
		{"type": "patchManifest", "manifestName": "deployment piped", "kind": "deployment", "mode": "static", "source": "text",
			"options": tree{"mergeStrategy": "strategic", "record": true}, "patchBody": []tree{{"metadata": tree{"labels": tree{"patched": "yes"}}}}},
		{"type": "deleteManifest", "manifestName": "cronJob report", "kind": "cronJob", "mode": "static", "options": tree{"cascading": true}},
		{"type": "findArtifactsFromResource", "manifestName": "deployment piped", "kind": "deployment", "mode": "static"},
	}
	for i, s := range stages {
		s["refId"] = fmt.Sprint(i + 1)
		s["requisiteStageRefIds"] = []string{}
		s["name"] = s["type"]
		s["account"] = account
		s["cloudProvider"] = "kubernetes"
		s["app"] = a.name
		s["location"] = a.name
		if i > 0 {
			s["requisiteStageRefIds"] = []string{fmt.Sprint(i)}
		}
	}
	return tree{"application": a.name, "name": pipelineName, "index": 0, "keepWaitingPipelines": false, "limitConcurrent": true, "triggers": []any{},
		"schema": "1", "stages": stages}
}

// object is an object of the cluster.
type object struct {
	plane *controlplane.Plane
	path  string
}

func (a *app) object(group, resource, name string) object {
	return object{a.plane, fmt.Sprintf("%s/namespaces/%s/%s/%s", group, a.name, resource, name)}
}

// effect returns a function that waits until an object of the cluster is as an action should leave it.
func effect(o object, what string, done func(controlplane.Object) bool) func(*page) {
	return func(p *page) {
		if p.err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(p.ctx, effectTimeout)
		defer cancel()
		if err := o.plane.Await(ctx, o.path, done); err != nil {
			p.err = fmt.Errorf("%s %s: %w", o.path, what, err)
		}
	}
}

// gone returns a function that waits until an object is gone.
func gone(o object) func(*page) {
	return func(p *page) {
		p.poll(o.path+" to be gone", effectTimeout, func() (bool, error) {
			err := o.plane.Get(p.ctx, o.path, nil)
			var status *controlplane.StatusError
			return errors.As(err, &status) && status.Code == http.StatusNotFound, err
		})
	}
}

// at returns the value at a path of an object as text, or "".
func at(o controlplane.Object, path ...string) string {
	for _, name := range path[:len(path)-1] {
		o, _ = o[name].(controlplane.Object)
	}
	if value, ok := o[path[len(path)-1]]; ok {
		return fmt.Sprint(value)
	}
	return ""
}

// image returns the image of a Deployment's first container.
func image(o controlplane.Object) string {
	raw, err := json.Marshal(o)
	if err != nil {
		return err.Error()
	}
	var d struct {
		Spec struct {
			Template struct {
				Spec struct{ Containers []struct{ Image string } }
			}
		}
	}
	if json.Unmarshal(raw, &d) != nil || len(d.Spec.Template.Spec.Containers) == 0 {
		return ""
	}
	return d.Spec.Template.Spec.Containers[0].Image
}

// startPipeline has Orca run a pipeline.
func startPipeline(orca string, pipeline map[string]any) error {
	return post(context.Background(), orca+"/orchestrate", pipeline, nil)
}

func get(ctx context.Context, url string, into any) error {
	return send(ctx, http.MethodGet, url, nil, into)
}

func post(ctx context.Context, url string, body, into any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return send(ctx, http.MethodPost, url, raw, into)
}

func send(ctx context.Context, method, url string, body []byte, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-SPINNAKER-USER", "tester")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %s: %.300s", method, url, response.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
