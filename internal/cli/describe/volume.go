package describe

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// volume is a volume of a pod, with its type ("configMap") and the fields of the type.
type volume struct {
	name     string
	typeName string
	source   map[string]any
}

// UnmarshalJSON decodes a volume of any type.
func (v *volume) UnmarshalJSON(raw []byte) error {
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	v.name, _ = members["name"].(string)
	for name, value := range members {
		if inner, is := value.(map[string]any); is {
			v.typeName, v.source = name, inner
		}
	}
	return nil
}

// volumeType says how to print a type of volume.
type volumeType struct {
	title   string
	members []volumeMember
}

type volumeMember struct {
	title, name  string
	defaultValue any // for fields that API servers omit
}

// volumeTypes are the common types that kubectl describes. Of other types all fields are
// printed.
var volumeTypes = map[string]volumeType{
	"hostPath": {"HostPath (bare host directory volume)", []volumeMember{{"Path", "path", ""}, {"HostPathType", "type", "<none>"}}},
	"emptyDir": {"EmptyDir (a temporary directory that shares a pod's lifetime)",
		[]volumeMember{{"Medium", "medium", ""}, {"SizeLimit", "sizeLimit", "<unset>"}}},
	"secret": {"Secret (a volume populated by a Secret)", []volumeMember{{"SecretName", "secretName", ""}, {"Optional", "optional", false}}},
	"configMap": {"ConfigMap (a volume populated by a ConfigMap)",
		[]volumeMember{{"Name", "name", ""}, {"Optional", "optional", false}}},
	"nfs": {"NFS (an NFS mount that lasts the lifetime of a pod)",
		[]volumeMember{{"Server", "server", ""}, {"Path", "path", ""}, {"ReadOnly", "readOnly", false}}},
	"persistentVolumeClaim": {"PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)",
		[]volumeMember{{"ClaimName", "claimName", ""}, {"ReadOnly", "readOnly", false}}},
	"csi": {"CSI (a Container Storage Interface (CSI) volume source)",
		[]volumeMember{{"Driver", "driver", ""}, {"FSType", "fsType", ""}, {"ReadOnly", "readOnly", false}}},
	"image": {"Image (a container image or OCI artifact)", []volumeMember{{"Reference", "reference", ""}, {"PullPolicy", "pullPolicy", ""}}},
}

// addVolumes adds the volumes of a pod template, or those of a pod, which are further left.
func (d *descriptionLines) addVolumes(all []volume, ofPod bool) {
	level, indent := 1, " "
	if ofPod {
		level, indent = 0, ""
	}
	if len(all) == 0 {
		d.addf(level, "Volumes:\t<none>")
		return
	}
	d.addf(level, "Volumes:")
	for _, v := range all {
		d.addf(1, "%s%s:", indent, v.name)
		d.addVolume(v)
	}
}

func (d *descriptionLines) addVolume(v volume) {
	known, is := volumeTypes[v.typeName]
	switch {
	case v.typeName == "projected":
		d.addProjectedVolume(v)
		return
	case v.typeName == "downwardAPI":
		d.addDownwardAPIVolume(v)
		return
	case !is:
		d.addOtherVolume(v)
		return
	}
	d.addf(2, "Type:\t%s", known.title)
	for _, m := range known.members {
		value := m.defaultValue
		if set, is := v.source[m.name]; is {
			value = set
		}
		if m.name == "sizeLimit" && isZeroQuantity(value) {
			value = m.defaultValue
		}
		d.addf(2, "%s:\t%v", m.title, value)
	}
	if v.typeName == "csi" {
		d.addVolumeAttributes(v)
	}
}

func isZeroQuantity(value any) bool {
	text, _ := value.(string)
	q, err := resource.ParseQuantity(text)
	return err == nil && q.IsZero()
}

func (d *descriptionLines) addVolumeAttributes(v volume) {
	attributes := map[string]string{}
	raw, _ := v.source["volumeAttributes"].(map[string]any)
	for name, value := range raw {
		attributes[name] = fmt.Sprint(value)
	}
	title := "    VolumeAttributes:"
	for _, line := range sortedPairs(attributes) {
		if len(line) > maxAnnotationLength {
			line = line[:maxAnnotationLength] + "..."
		}
		*d = append(*d, title+"\t    "+line)
		title = "        " // indented as in kubectl
	}
	if len(attributes) == 0 {
		*d = append(*d, title+"\t<none>")
	}
}

func (d *descriptionLines) addProjectedVolume(v volume) {
	d.addf(2, "Type:\tProjected (a volume that contains injected data from multiple sources)")
	sources, _ := v.source["sources"].([]any)
	for _, s := range sources {
		source, _ := s.(map[string]any)
		for _, kind := range []struct{ member, title string }{{"secret", "SecretName"}, {"configMap", "ConfigMapName"}} {
			if object, is := source[kind.member].(map[string]any); is {
				d.addf(2, "%s:\t%v", kind.title, object["name"])
				d.addf(2, "Optional:\t%v", object["optional"] == true)
			}
		}
		if token, is := source["serviceAccountToken"].(map[string]any); is {
			d.addf(2, "TokenExpirationSeconds:\t%v", token["expirationSeconds"])
		}
		if source["downwardAPI"] != nil {
			d.addf(2, "DownwardAPI:\ttrue")
		}
	}
}

func (d *descriptionLines) addDownwardAPIVolume(v volume) {
	d.addf(2, "Type:\tDownwardAPI (a volume populated by information about the pod)")
	d.addf(2, "Items:")
	items, _ := v.source["items"].([]any)
	for _, i := range items {
		item, _ := i.(map[string]any)
		if from, is := item["fieldRef"].(map[string]any); is {
			d.addf(3, "%v -> %v", from["fieldPath"], item["path"])
		}
		if from, is := item["resourceFieldRef"].(map[string]any); is {
			d.addf(3, "%v -> %v", from["resource"], item["path"])
		}
	}
}

func (d *descriptionLines) addOtherVolume(v volume) {
	if v.typeName == "" {
		d.addf(1, "<unknown>")
		return
	}
	d.addf(2, "Type:\t%s", v.typeName)
	for _, name := range slices.Sorted(maps.Keys(v.source)) {
		text, err := json.Marshal(v.source[name])
		if err != nil { // impossible: it was decoded from JSON
			panic(err)
		}
		d.addf(2, "%s:\t%s", name, text)
	}
}
