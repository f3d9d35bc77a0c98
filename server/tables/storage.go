package tables

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

type volumeSummary struct {
	Phase, Volume, Capacity string
	Modes                   []string
	Class, Attributes, Mode string
	Deleted                 string
	Reclaim, Reason         string
	ClaimNamespace, Claim   string
}

func (s *volumeSummary) phase() string {
	if s.Deleted != "" {
		return "Terminating"
	}
	return s.Phase
}

func persistentVolumeClaim() kindTable {
	return kindTable{
		resource: resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", true, "pvc"),
		fields: fields("phase", "status.phase", "volume", "spec.volumeName", "capacity", "status.capacity.storage",
			"modes", "status.accessModes", "class", "spec.storageClassName", "attributes", "spec.volumeAttributesClassName",
			"mode", "spec.volumeMode", "deleted", "metadata.deletionTimestamp"),
		table: newTable(columns("STATUS", "VOLUME", "CAPACITY", "ACCESS MODES", "STORAGECLASS", "VOLUMEATTRIBUTESCLASS", "AGE", "VOLUMEMODE*"),
			func(s *volumeSummary, o *vedette.Object, now time.Time) []string {
				if s.Volume == "" { // the capacity is unknown until the claim is bound
					s.Capacity, s.Modes = "", nil
				}
				return []string{s.phase(), s.Volume, s.Capacity, accessModes(s.Modes), s.Class, cmp.Or(s.Attributes, "<unset>"),
					ageSince(o.Created, now), cmp.Or(s.Mode, "<unset>")}
			}),
	}
}

func persistentVolume() kindTable {
	return kindTable{
		resource: resource("", "v1", "PersistentVolume", "persistentvolumes", false, "pv"),
		fields: fields("capacity", "spec.capacity.storage", "modes", "spec.accessModes", "reclaim", "spec.persistentVolumeReclaimPolicy",
			"phase", "status.phase", "claimNamespace", "spec.claimRef.namespace", "claim", "spec.claimRef.name",
			"class", "spec.storageClassName", "attributes", "spec.volumeAttributesClassName", "reason", "status.reason",
			"mode", "spec.volumeMode", "deleted", "metadata.deletionTimestamp"),
		table: newTable(columns("CAPACITY", "ACCESS MODES", "RECLAIM POLICY", "STATUS", "CLAIM", "STORAGECLASS", "VOLUMEATTRIBUTESCLASS",
			"REASON", "AGE", "VOLUMEMODE*"),
			func(s *volumeSummary, o *vedette.Object, now time.Time) []string {
				claim := ""
				if s.Claim != "" {
					claim = s.ClaimNamespace + "/" + s.Claim
				}
				return []string{s.Capacity, accessModes(s.Modes), s.Reclaim, s.phase(), claim, s.Class, cmp.Or(s.Attributes, "<unset>"),
					s.Reason, ageSince(o.Created, now), cmp.Or(s.Mode, "<unset>")}
			}),
	}
}

// accessModes formats access modes in kubectl's short form and order.
func accessModes(modes []string) string {
	var out []string
	for _, m := range [][2]string{{"ReadWriteOnce", "RWO"}, {"ReadOnlyMany", "ROX"}, {"ReadWriteMany", "RWX"}, {"ReadWriteOncePod", "RWOP"}} {
		if slices.Contains(modes, m[0]) {
			out = append(out, m[1])
		}
	}
	return strings.Join(out, ",")
}

func storageClass() kindTable {
	type summary struct {
		Provisioner, Reclaim, Binding string
		Expansion                     bool
	}
	return kindTable{
		resource: resource("storage.k8s.io", "v1", "StorageClass", "storageclasses", false, "sc"),
		fields: fields("provisioner", "provisioner", "reclaim", "reclaimPolicy", "binding", "volumeBindingMode",
			"expansion", "allowVolumeExpansion"),
		table: newTable(columns("PROVISIONER", "RECLAIMPOLICY", "VOLUMEBINDINGMODE", "ALLOWVOLUMEEXPANSION", "AGE"),
			func(s *summary, o *vedette.Object, now time.Time) []string {
				return []string{s.Provisioner, cmp.Or(s.Reclaim, "Delete"), cmp.Or(s.Binding, "Immediate"), strconv.FormatBool(s.Expansion),
					ageSince(o.Created, now)}
			}),
	}
}

func configMap() kindTable {
	type summary struct{ Data, Binary int }
	return kindTable{
		resource: resource("", "v1", "ConfigMap", "configmaps", true, "cm"),
		fields:   fields("data", "data.#", "binary", "binaryData.#"),
		table: newTable(columns("DATA", "AGE"), func(s *summary, o *vedette.Object, now time.Time) []string {
			return []string{strconv.Itoa(s.Data + s.Binary), ageSince(o.Created, now)}
		}),
	}
}

// secret has no columns TYPE and DATA, because agents request only the metadata of Secrets.
func secret() kindTable {
	type summary struct{}
	return kindTable{
		resource: resource("", "v1", "Secret", "secrets", true),
		table: newTable(columns("AGE"), func(_ *summary, o *vedette.Object, now time.Time) []string {
			return []string{ageSince(o.Created, now)}
		}),
	}
}
