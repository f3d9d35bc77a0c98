package main

import (
	_ "embed" // for pipelines.yaml
	"encoding/base64"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed pipelines.yaml
var pipelinesFile string

// application is the Spinnaker application of all pipelines.
const application = "stages"

// pipeline is one pipeline as pipelines.yaml has it.
type pipeline struct {
	Name   string
	End    string // SUCCEEDED if empty
	Stages []stage
}

// stage is one stage; the file describes its forms.
type stage struct {
	Deploy   []map[string]any
	Job      map[string]any
	Named    string
	Object   string
	Chosen   string
	Kind     string
	Cluster  string
	Criteria string
	Stage    string
	With     map[string]any
}

// parsePipelines parses the file for an account and a namespace.
func parsePipelines(text, account, namespace string) ([]pipeline, error) {
	var file struct {
		Templates map[string]any
		Pipelines []pipeline
	}
	text = strings.NewReplacer("NAMESPACE", namespace, "ACCOUNT", account).Replace(text)
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("parse pipelines: %w", err)
	}
	return file.Pipelines, nil
}

// end returns how the pipeline should end.
func (p pipeline) end() string {
	if p.End == "" {
		return "SUCCEEDED"
	}
	return p.End
}

// request returns what Orca's /orchestrate takes. Stages run one after the other.
func (p pipeline) request(account, namespace string) map[string]any {
	stages := make([]map[string]any, 0, len(p.Stages))
	for i, s := range p.Stages {
		tree := s.tree(account, namespace)
		tree["refId"], tree["requisiteStageRefIds"] = strconv.Itoa(i+1), []string{}
		if i > 0 {
			tree["requisiteStageRefIds"] = []string{strconv.Itoa(i)}
		}
		stages = append(stages, tree)
	}
	return map[string]any{"application": application, "name": p.Name, "stages": stages, "keepWaitingPipelines": false, "limitConcurrent": false,
		"trigger": map[string]any{"type": "manual", "user": "tester", "parameters": map[string]any{}}}
}

// tree returns the stage as Orca knows it.
func (s stage) tree(account, namespace string) map[string]any {
	tree := map[string]any{"account": account, "cloudProvider": "kubernetes"}
	switch {
	case s.Deploy != nil:
		maps.Copy(tree, map[string]any{"type": "deployManifest", "source": "text", "manifests": s.Deploy, "moniker": map[string]any{"app": application},
			"skipExpressionEvaluation": false,
			"trafficManagement":        map[string]any{"enabled": false, "options": map[string]any{"enableTraffic": false, "services": []string{}}}})
	case s.Job != nil:
		maps.Copy(tree, map[string]any{"type": "runJobManifest", "alias": "runJob", "credentials": account, "source": "text", "manifest": s.Job,
			"application": application})
	case s.Named != "":
		kind, _, _ := strings.Cut(s.Object, " ")
		maps.Copy(tree, map[string]any{"type": s.Named, "app": application, "location": namespace, "manifestName": s.Object, "mode": "static", "kind": kind})
	case s.Chosen != "":
		maps.Copy(tree, map[string]any{"type": s.Chosen, "app": application, "location": namespace, "mode": "dynamic", "kind": s.Kind,
			"cluster": s.Cluster, "criteria": s.Criteria})
	default:
		tree["type"] = s.Stage
	}
	maps.Copy(tree, s.With)
	tree["name"] = tree["type"]
	if artifact, ok := tree["manifestArtifact"].(map[string]any); ok {
		delete(tree, "manifests")
		tree["manifestArtifact"] = embedded(artifact)
	}
	return tree
}

// embedded returns an artifact whose text is encoded.
func embedded(artifact map[string]any) map[string]any {
	encoded := maps.Clone(artifact)
	delete(encoded, "text")
	encoded["reference"] = base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(artifact["text"])))
	return encoded
}
