package clouddriver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// artifact is something that a manifest refers to and a pipeline may replace.
type artifact struct {
	Type       string            `json:"type"`
	CustomKind bool              `json:"customKind"`
	Name       string            `json:"name"`
	Reference  string            `json:"reference"`
	Metadata   map[string]string `json:"metadata"`
}

type podSpec struct {
	Containers, InitContainers []container
	Volumes                    []struct {
		ConfigMap *struct{ Name string }
		Secret    *struct{ SecretName string }
		Projected *struct {
			Sources []struct{ ConfigMap, Secret *struct{ Name string } }
		}
	}
}

type container struct {
	Image string
	Env   []struct {
		ValueFrom *struct{ ConfigMapKeyRef, SecretKeyRef *struct{ Name string } }
	}
	EnvFrom []struct{ ConfigMapRef, SecretRef *struct{ Name string } }
}

type templated struct {
	Spec struct {
		Template       struct{ Spec podSpec }
		ScaleTargetRef struct{ Kind, Name string }
		JobTemplate    struct {
			Spec struct{ Template struct{ Spec podSpec } }
		}
	}
}

// artifactsOf finds the images and the configuration that a manifest refers to,
// of the kinds in which Clouddriver looks for them.
func artifactsOf(kind vedette.Kind, manifest []byte) ([]artifact, error) {
	found := &found{artifacts: []artifact{}}
	if !vedette.IsNativeGroup(kind.Group) {
		return found.artifacts, nil
	}
	var err error
	switch kind.Name {
	case "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "HorizontalPodAutoscaler":
		var m templated
		err = json.Unmarshal(manifest, &m)
		found.template(m.Spec.Template.Spec)
		found.template(m.Spec.JobTemplate.Spec.Template.Spec)
		found.scaled(m.Spec.ScaleTargetRef.Kind, m.Spec.ScaleTargetRef.Name)
	case "Pod":
		var m struct{ Spec podSpec }
		err = json.Unmarshal(manifest, &m)
		found.images(m.Spec.Containers) // and not of init containers, nor the configuration
	}
	if err != nil {
		return nil, fmt.Errorf("find the artifacts of a %s: %w", kind, err)
	}
	return found.artifacts, nil
}

type found struct{ artifacts []artifact }

// add keeps what is not there yet.
func (f *found) add(kind, name, reference string) {
	same := func(a artifact) bool { return a.Type == kind && a.Reference == reference }
	if reference != "" && !slices.ContainsFunc(f.artifacts, same) {
		f.artifacts = append(f.artifacts, artifact{Type: kind, Name: name, Reference: reference, Metadata: map[string]string{}})
	}
}

func (f *found) images(containers []container) {
	for _, c := range containers {
		f.add("docker/image", imageName(c.Image), c.Image)
	}
}

// imageName cuts the digest, or else what follows the last colon: of an image
// without a tag from a registry with a port that is too much, and is what
// Clouddriver does.
func imageName(image string) string {
	if name, _, ok := strings.Cut(image, "@"); ok {
		return name
	}
	if i := strings.LastIndexByte(image, ':'); i >= 0 {
		return image[:i]
	}
	return image
}

type named = *struct{ Name string }

func (f *found) config(configMap, secret named) {
	if configMap != nil {
		f.add("kubernetes/configMap", configMap.Name, configMap.Name)
	}
	if secret != nil {
		f.add("kubernetes/secret", secret.Name, secret.Name)
	}
}

func (f *found) template(s podSpec) {
	all := slices.Concat(s.Containers, s.InitContainers)
	f.images(all)
	for _, v := range s.Volumes {
		f.config(v.ConfigMap, nil)
		if v.Secret != nil {
			f.add("kubernetes/secret", v.Secret.SecretName, v.Secret.SecretName)
		}
		if v.Projected != nil {
			for _, source := range v.Projected.Sources {
				f.config(source.ConfigMap, source.Secret)
			}
		}
	}
	for _, c := range all {
		for _, e := range c.Env {
			if e.ValueFrom != nil {
				f.config(e.ValueFrom.ConfigMapKeyRef, e.ValueFrom.SecretKeyRef)
			}
		}
		for _, e := range c.EnvFrom {
			f.config(e.ConfigMapRef, e.SecretRef)
		}
	}
}

// scaled is what an autoscaler scales, as far as it may be an artifact.
func (f *found) scaled(kind, name string) {
	switch kind {
	case "Deployment", "deployment", "ReplicaSet", "replicaSet":
		f.add("kubernetes/"+strings.ToLower(kind[:1])+kind[1:], name, name)
	}
}
