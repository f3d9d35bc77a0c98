package standin

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"
)

// AnsweredBy is the label of all objects that the stand-in answers about; its value is Name.
const AnsweredBy = "example.com/answered-by"

// Name is the value of AnsweredBy, and the environment of the stand-in's accounts.
const Name = "upstream"

// Account is an account as Clouddriver's configuration has it.
type Account struct {
	Name     string
	Provider string // "kubernetes" if empty
}

func (a Account) provider() string {
	if a.Provider == "" {
		return "kubernetes"
	}
	return a.Provider
}

// Object is a Kubernetes object of an account.
type Object struct {
	Account  string
	manifest map[string]any
	parsed
}

// parsed has the fields from which answers are derived.
type parsed struct {
	APIVersion, Kind string
	Metadata         struct {
		Name, Namespace, UID string
		CreationTimestamp    time.Time
		Labels, Annotations  map[string]string
		OwnerReferences      []struct{ UID string }
	}
	Spec struct {
		Replicas int
		Selector any
		Template template
	}
}

type template struct {
	Metadata struct{ Labels map[string]string }
	Spec     struct{ Containers []struct{ Image string } }
}

// ParseObject returns an object from the JSON that an API server shows.
func ParseObject(account string, raw []byte) (Object, error) {
	o := Object{Account: account}
	if err := json.Unmarshal(raw, &o.parsed); err != nil {
		return o, fmt.Errorf("parse an object of account %s: %w", account, err)
	}
	if err := json.Unmarshal(raw, &o.manifest); err != nil {
		return o, fmt.Errorf("parse an object of account %s: %w", account, err)
	}
	if o.Kind == "" || o.Metadata.Name == "" {
		return o, fmt.Errorf("parse an object of account %s: it has no kind or no name: %.200s", account, raw)
	}
	return o, nil
}

// kind returns the kind as Clouddriver writes it, for example "replicaSet".
func (o Object) kind() string { return strings.ToLower(o.Kind[:1]) + o.Kind[1:] }

// FullName returns kind and name, by which Spinnaker knows an object.
func (o Object) FullName() string { return o.kind() + " " + o.Metadata.Name }

// Application returns the Spinnaker application to which the object belongs; "" if it has none.
func (o Object) Application() string {
	return o.Metadata.Annotations["moniker.spinnaker.io/application"]
}

// Cluster returns the name of the Spinnaker cluster to which the object belongs.
func (o Object) Cluster() string { return o.Metadata.Annotations["moniker.spinnaker.io/cluster"] }

func (o Object) moniker() map[string]any {
	return map[string]any{"app": o.Application(), "cluster": o.Cluster()}
}

// labels returns the labels of the object with the one that names the stand-in.
func (o Object) labels() map[string]string {
	labels := map[string]string{AnsweredBy: Name}
	maps.Copy(labels, o.Metadata.Labels)
	return labels
}

func (o Object) isOwnedBy(owner Object) bool {
	for _, reference := range o.Metadata.OwnerReferences {
		if reference.UID == owner.Metadata.UID && o.Account == owner.Account {
			return true
		}
	}
	return false
}

// selects reports whether a Service sends requests to the Pods of a ReplicaSet.
func (o Object) selects(serverGroup Object) bool {
	selector, _ := o.Spec.Selector.(map[string]any)
	for name, value := range selector {
		if serverGroup.Spec.Template.Metadata.Labels[name] != value {
			return false
		}
	}
	return len(selector) > 0 && o.Account == serverGroup.Account && o.Metadata.Namespace == serverGroup.Metadata.Namespace
}

// base returns the members that views of all kinds have.
func (o Object) base() map[string]any {
	return map[string]any{"account": o.Account, "apiVersion": o.APIVersion, "createdTime": o.Metadata.CreationTimestamp.UnixMilli(),
		"displayName": o.Metadata.Name, "kind": o.kind(), "labels": o.labels(), "moniker": o.moniker(), "name": o.FullName(),
		"namespace": o.Metadata.Namespace, "region": o.Metadata.Namespace}
}
