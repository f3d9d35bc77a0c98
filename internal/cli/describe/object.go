package describe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vedette-io/vedette"
)

// Object is an object and what is shown with it.
type Object struct {
	Account  string          // shown as the first line if it is not empty
	Manifest json.RawMessage // as its cluster sent it
	Events   []Event
	// ShowEvents is false if the Events were not read.
	ShowEvents bool
	// ReplicaSets are those of a Deployment.
	ReplicaSets []json.RawMessage
}

// Event is an Event about the object, as its columns.
type Event struct{ Type, Reason, Age, From, Message string }

// metadata has the fields of metadata that are shown in a layout of their own.
type metadata struct {
	Name, Namespace            string
	UID                        string
	CreationTimestamp          time.Time
	DeletionTimestamp          *time.Time
	DeletionGracePeriodSeconds int64
	Labels, Annotations        map[string]string
	OwnerReferences            []metav1.OwnerReference
}

// controller returns the owner that controls the object, "ReplicaSet/web-1"; empty if none does.
func (m metadata) controller() string {
	for _, owner := range m.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			return owner.Kind + "/" + owner.Name
		}
	}
	return ""
}

// Describe returns the description of an object. Its lines end with a line feed.
func (o Object) Describe(now time.Time) (string, error) {
	var header struct {
		APIVersion, Kind string
	}
	if err := json.Unmarshal(o.Manifest, &header); err != nil {
		return "", fmt.Errorf("read the object: %w", err)
	}
	var d descriptionLines
	if o.Account != "" {
		d.addf(0, "Account:\t%s", o.Account)
	}
	group, _, found := strings.Cut(header.APIVersion, "/")
	if !found {
		group = ""
	}
	var err error
	switch (vedette.Kind{Group: group, Name: header.Kind}) {
	case vedette.Kind{Name: "Pod"}:
		err = d.addPod(o, now)
	case vedette.Kind{Group: "apps", Name: "Deployment"}:
		err = d.addDeployment(o)
	default:
		err = d.addGeneric(o)
	}
	if err != nil {
		return "", fmt.Errorf("read the %s: %w", header.Kind, err)
	}
	if !o.ShowEvents {
		return align(d), nil
	}
	if len(o.Events) == 0 {
		d.addf(0, "Events:\t<none>")
		return align(d), nil
	}
	return align(d) + align(eventLines(o.Events)), nil
}

// align aligns the cells of lines as kubectl describe does.
func align(lines []string) string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, line := range lines {
		_, _ = io.WriteString(w, line+"\n") // a buffer does not fail
	}
	_ = w.Flush()
	return b.String()
}

func (d *descriptionLines) addMetadata(m metadata) {
	d.addValues("Labels:", sortedPairs(m.Labels))
	d.addValues("Annotations:", annotationLines(m.Annotations))
}

// eventLines returns the Events as kubectl describe shows them.
func eventLines(events []Event) []string {
	d := descriptionLines{"Events:", "  Type\tReason\tAge\tFrom\tMessage", "  ----\t------\t----\t----\t-------"}
	for _, e := range events {
		d.addf(1, "%s\t%s\t%s\t%s\t%s", e.Type, e.Reason, e.Age, e.From, strings.ReplaceAll(e.Message, "\n", " "))
	}
	return d
}
