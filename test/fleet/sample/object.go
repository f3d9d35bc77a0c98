package sample

import (
	"fmt"
	"strconv"
	"time"

	"github.com/vedette-io/vedette"
)

// object is the object that is being written.
type object struct {
	c         *Cluster
	kind      vedette.Kind
	i         int
	version   uint64
	appNumber int // number of its application in the cluster
	app       *app
}

func (c *Cluster) object(kind vedette.Kind, i int, version uint64) *object {
	appNumber := i
	if n := perApp[kind.Name]; n > 0 {
		appNumber = i / n
	}
	return &object{c: c, kind: kind, i: i, version: version, appNumber: appNumber, app: &c.apps[(c.first+appNumber)%len(c.apps)]}
}

// Salts distinguish values that are derived from the same object.
const (
	saltUID = iota + 1
	saltHash
	saltSuffix
	saltTime
	saltIP
	saltContainer
)

func mix(x uint64) uint64 { // splitmix64
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (c *Cluster) hash(kind vedette.Kind, i, salt int) uint64 {
	h := c.seed
	for j := range len(kind.Name) {
		h = h*31 + uint64(kind.Name[j])
	}
	return mix(mix(h+uint64(i)) + uint64(salt))
}

func (o *object) hash(salt int) uint64 { return o.c.hash(o.kind, o.i, salt) }

var (
	replicaSets = vedette.Kind{Group: "apps", Name: "ReplicaSet"}
	deployments = vedette.Kind{Group: "apps", Name: "Deployment"}
	namespaces  = vedette.Kind{Name: "Namespace"}
)

// replicaSet returns the number of the ReplicaSet that an object belongs to: the application's
// newest.
func (o *object) replicaSet() int {
	if o.kind == replicaSets {
		return o.i
	}
	return 2*o.appNumber + 1
}

// suffixAlphabet are the characters of Kubernetes' hashes and suffixes.
const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"

func appendSafe(dst []byte, h uint64, n int) []byte {
	for range n {
		dst = append(dst, suffixAlphabet[h%uint64(len(suffixAlphabet))])
		h /= uint64(len(suffixAlphabet))
	}
	return dst
}

const digits = "0123456789abcdef"

func appendHex(dst []byte, h uint64, n int) []byte {
	for range n {
		dst = append(dst, digits[h&15])
		h >>= 4
	}
	return dst
}

func appendUID(dst []byte, h uint64) []byte {
	dst = append(appendHex(dst, h, 8), '-')
	dst = append(appendHex(dst, h>>32, 4), '-', '4')
	dst = append(appendHex(dst, h>>48, 3), '-', 'a')
	h = mix(h)
	dst = append(appendHex(dst, h, 3), '-')
	return appendHex(dst, h>>12, 12)
}

func appendLongHex(dst []byte, h uint64) []byte {
	for range 4 {
		dst = appendHex(dst, h, 16)
		h = mix(h)
	}
	return dst
}

func appendInt(dst []byte, n uint64) []byte { return strconv.AppendUint(dst, n, 10) }

func appendTime(dst []byte, seconds uint64) []byte {
	return time.Unix(1735689600+int64(seconds), 0).UTC().AppendFormat(dst, time.RFC3339)
}

func (o *object) appName(dst []byte) []byte {
	dst = append(dst, o.app.name...)
	if repetition := o.appNumber / len(o.c.apps); repetition > 0 {
		dst = appendInt(append(dst, '-'), uint64(repetition))
	}
	return dst
}

func (o *object) owner(dst []byte) []byte {
	dst = append(o.appName(dst), '-')
	return appendSafe(dst, o.c.hash(replicaSets, o.replicaSet(), saltHash), 10)
}

func (o *object) name(dst []byte) []byte {
	switch o.kind.Name {
	case "Namespace":
		return appendNamespace(dst, o.i)
	case "Pod":
		return appendSafe(append(o.owner(dst), '-'), o.hash(saltSuffix), 5)
	case "ReplicaSet":
		return o.owner(dst)
	case "ConfigMap":
		return append(o.appName(dst), "-config"...)
	case "Job", "CronJob":
		return appendSafe(append(o.appName(dst), "-sweep-"...), o.hash(saltHash), 8)
	}
	return o.appName(dst)
}

func appendNamespace(dst []byte, i int) []byte {
	if i < len(systemNamespaces) {
		return append(dst, systemNamespaces[i]...)
	}
	i -= len(systemNamespaces)
	if i < len(teams) {
		return append(dst, teams[i]...)
	}
	return fmt.Appendf(dst, "preview-%d", i)
}

func (o *object) namespace(dst []byte) []byte {
	if o.kind == namespaces {
		return dst
	}
	return append(dst, o.app.team...)
}

func (o *object) labels(dst []byte) []byte {
	dst = o.appName(append(dst, `{"app":"`...))
	dst = o.appName(append(dst, `","app.kubernetes.io/managed-by":"spinnaker","app.kubernetes.io/name":"`...))
	dst = append(dst, '"')
	if o.kind == replicaSets || o.kind.Name == "Pod" {
		dst = append(dst, `,"pod-template-hash":"`...)
		dst = appendSafe(dst, o.c.hash(replicaSets, o.replicaSet(), saltHash), 10)
		dst = append(dst, '"')
	}
	dst = append(append(dst, `,"team":"`...), o.app.team...)
	dst = append(append(dst, `","tier":"`...), o.app.tier...)
	return append(dst, `"}`...)
}

func (o *object) ip(dst []byte, network string, h uint64) []byte {
	dst = append(dst, network...)
	dst = append(appendInt(dst, h%250), '.')
	return appendInt(dst, 1+h>>8%250)
}

func (o *object) created() uint64 { return o.hash(saltTime) % (300 * 24 * 3600) }

// fillers write the values for a template's gaps.
var fillers = map[string]func(o *object, dst []byte) []byte{
	"name":      (*object).name,
	"namespace": (*object).namespace,
	"app":       (*object).appName,
	"owner":     (*object).owner,
	"labels":    (*object).labels,
	"team":      func(o *object, dst []byte) []byte { return append(dst, o.app.team...) },
	"uid":       func(o *object, dst []byte) []byte { return appendUID(dst, o.hash(saltUID)) },
	"owneruid": func(o *object, dst []byte) []byte {
		return appendUID(dst, o.c.hash(replicaSets, o.replicaSet(), saltUID))
	},
	"deploymentuid": func(o *object, dst []byte) []byte { return appendUID(dst, o.c.hash(deployments, o.appNumber, saltUID)) },
	"version":       func(o *object, dst []byte) []byte { return appendInt(dst, o.version) },
	"generation":    func(o *object, dst []byte) []byte { return appendInt(dst, 1+o.hash(saltTime)%5) },
	"revision":      func(o *object, dst []byte) []byte { return appendInt(dst, 1+uint64(o.replicaSet()%2)) },
	"created":       func(o *object, dst []byte) []byte { return appendTime(dst, o.created()) },
	"changed":       func(o *object, dst []byte) []byte { return appendTime(dst, 300*24*3600+o.version%(60*24*3600)) },
	"restarts":      func(o *object, dst []byte) []byte { return appendInt(dst, o.version%4) },
	"ready":         func(o *object, dst []byte) []byte { return appendInt(dst, 3+o.version%2) },
	"suffix":        func(o *object, dst []byte) []byte { return appendSafe(dst, o.hash(saltSuffix), 5) },
	"hash": func(o *object, dst []byte) []byte {
		return appendSafe(dst, o.c.hash(replicaSets, o.replicaSet(), saltHash), 10)
	},
	"node": func(o *object, dst []byte) []byte {
		return append(o.ip(append(dst, "ip-10-0-"...), "", o.hash(saltIP)%40), ".eu-central-1.compute.internal"...)
	},
	"hostip":    func(o *object, dst []byte) []byte { return o.ip(dst, "10.0.", o.hash(saltIP)%40) },
	"ip":        func(o *object, dst []byte) []byte { return o.ip(dst, "10.12.", o.hash(saltIP)) },
	"serviceip": func(o *object, dst []byte) []byte { return o.ip(dst, "10.96.", o.hash(saltIP)) },
	"container": func(o *object, dst []byte) []byte { return appendLongHex(dst, o.hash(saltContainer)) },
	"restart": func(o *object, dst []byte) []byte {
		if o.kind.Group == "batch" {
			return append(dst, "Never"...)
		}
		return append(dst, "Always"...)
	},
	"image":     func(o *object, dst []byte) []byte { return append(dst, o.app.image...) },
	"imageid":   func(o *object, dst []byte) []byte { return append(dst, o.app.imageID...) },
	"port":      func(o *object, dst []byte) []byte { return appendInt(dst, uint64(o.app.port)) },
	"cpu":       func(o *object, dst []byte) []byte { return append(dst, o.app.cpu...) },
	"memory":    func(o *object, dst []byte) []byte { return append(dst, o.app.memory...) },
	"probe":     func(o *object, dst []byte) []byte { return append(dst, o.app.probe...) },
	"env":       func(o *object, dst []byte) []byte { return append(dst, o.app.env...) },
	"envfields": func(o *object, dst []byte) []byte { return append(dst, o.app.envFields...) },
}
