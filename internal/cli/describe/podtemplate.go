// Package describe writes objects as `kubectl describe` does, and pod templates as `kubectl rollout history --revision`
// does. Pods and Deployments have kubectl's layout. All other kinds have the one that kubectl uses for custom kinds, which
// shows all fields. kubectl's own packages would double the program (docs/decisions/0154).
package describe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vedette-io/vedette"
)

// PodTemplate has the fields of a pod template that kubectl describes.
type PodTemplate struct {
	Metadata struct{ Labels, Annotations map[string]string }
	Spec     podSpec
}

type podSpec struct {
	ServiceAccountName, PriorityClassName string
	InitContainers, Containers            []container
	Volumes                               []volume
	NodeSelector                          map[string]string
	Tolerations                           []toleration
	TopologySpreadConstraints             []topologySpread
}

type toleration struct {
	Key, Operator, Value, Effect string
	TolerationSeconds            *int64
}

type topologySpread struct {
	TopologyKey, WhenUnsatisfiable string
	MaxSkew                        int64
	LabelSelector                  *metav1.LabelSelector
}

// descriptionLines are lines of text, whose columns are separated by tabs as in kubectl's
// output.
type descriptionLines []string

// addf adds a line, indented by two spaces per level.
func (d *descriptionLines) addf(level int, format string, args ...any) {
	*d = append(*d, strings.Repeat("  ", level)+fmt.Sprintf(format, args...))
}

func (d *descriptionLines) addValues(title string, values []string) {
	if len(values) == 0 {
		values = []string{"<none>"}
	}
	for i, value := range values {
		if i > 0 {
			title = ""
		}
		*d = append(*d, title+"\t"+value)
	}
}

// Describe returns the lines that kubectl prints for the template. The cause is the change
// cause of its revision; it is shown as an annotation if it is not empty.
func (t PodTemplate) Describe(cause string) []string {
	var d descriptionLines
	d.addf(0, "Pod Template:")
	d.addValues("  Labels:", sortedPairs(t.Metadata.Labels))
	annotations := maps.Clone(t.Metadata.Annotations)
	if cause != "" {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[vedette.ChangeCauseAnnotation] = cause
	}
	if len(annotations) > 0 {
		d.addValues("  Annotations:", annotationLines(annotations))
	}
	if t.Spec.ServiceAccountName != "" {
		d.addf(1, "Service Account:\t%s", t.Spec.ServiceAccountName)
	}
	if len(t.Spec.InitContainers) > 0 {
		d.addContainers("Init Containers", t.Spec.InitContainers, false, nil)
	}
	d.addContainers("Containers", t.Spec.Containers, false, nil)
	d.addVolumes(t.Spec.Volumes, false)
	if len(t.Spec.TopologySpreadConstraints) > 0 {
		d.addValues("  Topology Spread Constraints:", spreadLines(t.Spec.TopologySpreadConstraints))
	}
	if t.Spec.PriorityClassName != "" {
		d.addf(1, "Priority Class Name:\t%s", t.Spec.PriorityClassName)
	}
	d.addValues("  Node-Selectors:", sortedPairs(t.Spec.NodeSelector))
	d.addValues("  Tolerations:", tolerationLines(t.Spec.Tolerations))
	return d
}

// sortedPairs returns the members of a map as "name=value", sorted by name.
func sortedPairs(m map[string]string) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, name+"="+m[name])
	}
	return lines
}

// maxAnnotationLength is the longest annotation on one line, in bytes, as in kubectl.
const maxAnnotationLength = 140

// annotationLines puts long and multi-line values below the name of the annotation.
func annotationLines(annotations map[string]string) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		value := strings.TrimSuffix(annotations[name], "\n")
		if name == lastAppliedAnnotation {
			continue
		}
		if len(name)+len(value)+2 <= maxAnnotationLength && !strings.Contains(value, "\n") {
			lines = append(lines, name+": "+value)
			continue
		}
		lines = append(lines, name+":")
		for line := range strings.SplitSeq(value, "\n") {
			if len(line) > maxAnnotationLength-2 {
				line = strings.ToValidUTF8(line[:maxAnnotationLength-2], "") + "..."
			}
			lines = append(lines, "  "+line)
		}
	}
	return lines
}

const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

func tolerationLines(all []toleration) []string {
	slices.SortStableFunc(all, func(a, b toleration) int { return cmp.Compare(a.Key, b.Key) })
	var lines []string
	for _, t := range all {
		line := t.Key
		if t.Value != "" {
			line += "=" + t.Value
		}
		if t.Effect != "" {
			line += ":" + t.Effect
		}
		if t.Operator == "Exists" && t.Value == "" {
			line = strings.TrimPrefix(line+" op=Exists", " ")
		}
		if t.TolerationSeconds != nil {
			line += fmt.Sprintf(" for %ds", *t.TolerationSeconds)
		}
		lines = append(lines, line)
	}
	return lines
}

func spreadLines(all []topologySpread) []string {
	slices.SortStableFunc(all, func(a, b topologySpread) int { return cmp.Compare(a.TopologyKey, b.TopologyKey) })
	var lines []string
	for _, s := range all {
		line := fmt.Sprintf("%s:%s when max skew %d is exceeded", s.TopologyKey, s.WhenUnsatisfiable, s.MaxSkew)
		if s.LabelSelector != nil {
			line += " for selector " + metav1.FormatLabelSelector(s.LabelSelector)
		}
		lines = append(lines, line)
	}
	return lines
}
