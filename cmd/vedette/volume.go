package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// volume is a volume of a pod: its name, and what it is made of, under the name of
// its sort.
type volume struct {
	name string
	sort string
	of   map[string]any
}

// UnmarshalJSON reads a volume of any sort.
func (v *volume) UnmarshalJSON(raw []byte) error {
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	v.name, _ = members["name"].(string)
	for name, of := range members {
		if inner, is := of.(map[string]any); is {
			v.sort, v.of = name, inner
		}
	}
	return nil
}

// volumeSort is how a sort of volume is told.
type volumeSort struct {
	what    string
	members []volumeMember
}

type volumeMember struct {
	title, name string
	unset       any // what an API server leaves out
}

// volumeSorts are those that kubectl has words for and that are in use. Of others
// their members are told.
var volumeSorts = map[string]volumeSort{
	"hostPath": {"HostPath (bare host directory volume)", []volumeMember{{"Path", "path", ""}, {"HostPathType", "type", "<none>"}}},
	"emptyDir": {"EmptyDir (a temporary directory that shares a pod's lifetime)", []volumeMember{{"Medium", "medium", ""}, {"SizeLimit", "sizeLimit", "<unset>"}}},
	"secret":   {"Secret (a volume populated by a Secret)", []volumeMember{{"SecretName", "secretName", ""}, {"Optional", "optional", false}}},
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

func (d *described) volumes(all []volume) {
	if len(all) == 0 {
		d.add(1, "Volumes:\t<none>")
		return
	}
	d.add(1, "Volumes:")
	for _, v := range all {
		d.add(1, " %s:", v.name)
		d.volume(v)
	}
}

func (d *described) volume(v volume) {
	known, is := volumeSorts[v.sort]
	switch {
	case v.sort == "projected":
		d.projected(v)
		return
	case v.sort == "downwardAPI":
		d.downward(v)
		return
	case !is:
		d.otherVolume(v)
		return
	}
	d.add(2, "Type:\t%s", known.what)
	for _, m := range known.members {
		value := m.unset
		if has, is := v.of[m.name]; is {
			value = has
		}
		if m.name == "sizeLimit" && zero(value) {
			value = m.unset
		}
		d.add(2, "%s:\t%v", m.title, value)
	}
	if v.sort == "csi" {
		d.attributes(v)
	}
}

// zero reports whether a quantity is nothing.
func zero(value any) bool {
	text, _ := value.(string)
	q, err := resource.ParseQuantity(text)
	return err == nil && q.IsZero()
}

func (d *described) attributes(v volume) {
	attributes := map[string]string{}
	given, _ := v.of["volumeAttributes"].(map[string]any)
	for name, value := range given {
		attributes[name] = fmt.Sprint(value)
	}
	title := "    VolumeAttributes:"
	for _, line := range pairs(attributes, "=") {
		if len(line) > mostAnnotation {
			line = line[:mostAnnotation] + "..."
		}
		*d = append(*d, title+"\t    "+line)
		title = "        " // as deep as kubectl puts them
	}
	if len(attributes) == 0 {
		*d = append(*d, title+"\t<none>")
	}
}

// projected tells where the files of a volume come from.
func (d *described) projected(v volume) {
	d.add(2, "Type:\tProjected (a volume that contains injected data from multiple sources)")
	sources, _ := v.of["sources"].([]any)
	for _, s := range sources {
		source, _ := s.(map[string]any)
		for _, kind := range []struct{ member, title string }{{"secret", "SecretName"}, {"configMap", "ConfigMapName"}} {
			if of, is := source[kind.member].(map[string]any); is {
				d.add(2, "%s:\t%v", kind.title, of["name"])
				d.add(2, "Optional:\t%v", of["optional"] == true)
			}
		}
		if token, is := source["serviceAccountToken"].(map[string]any); is {
			d.add(2, "TokenExpirationSeconds:\t%v", token["expirationSeconds"])
		}
		if source["downwardAPI"] != nil {
			d.add(2, "DownwardAPI:\ttrue")
		}
	}
}

func (d *described) downward(v volume) {
	d.add(2, "Type:\tDownwardAPI (a volume populated by information about the pod)")
	d.add(2, "Items:")
	items, _ := v.of["items"].([]any)
	for _, i := range items {
		item, _ := i.(map[string]any)
		if from, is := item["fieldRef"].(map[string]any); is {
			d.add(3, "%v -> %v", from["fieldPath"], item["path"])
		}
		if from, is := item["resourceFieldRef"].(map[string]any); is {
			d.add(3, "%v -> %v", from["resource"], item["path"])
		}
	}
}

func (d *described) otherVolume(v volume) {
	if v.sort == "" {
		d.add(1, "<unknown>")
		return
	}
	d.add(2, "Type:\t%s", v.sort)
	for _, name := range slices.Sorted(maps.Keys(v.of)) {
		text, err := json.Marshal(v.of[name])
		if err != nil { // it was decoded
			panic(err)
		}
		d.add(2, "%s:\t%s", name, text)
	}
}
