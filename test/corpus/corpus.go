// Package corpus makes Kubernetes objects that look like a busy cluster's, for
// tests and benchmarks: what repeats in reality repeats here (labels, images,
// probes), and what does not (uids, addresses, hashes, times) is as random. The
// same seed makes the same objects.
package corpus

import (
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

//go:embed templates
var templates embed.FS

// Corpus makes objects of one cluster. It is not safe for concurrent use.
type Corpus struct {
	random        *rand.Rand
	source        *rand.PCG // that random draws from
	version       int
	workloadCount int // workloads
	team          string
	app           string
	queue         []Item
	nodes         []string
	proxy         string // digest of the sidecar's image
}

// Item is an object as the store is given it, and as the API server sends it.
type Item struct {
	Object vedette.Object
	Raw    []byte // with managedFields
}

// New returns the cluster of a seed.
func New(seed uint64) *Corpus {
	source := rand.NewPCG(seed, seed)
	c := &Corpus{random: rand.New(source), source: source, version: 1_000_000 + int(seed%1000)*10_000}
	c.proxy = c.hex(64)
	for range 200 {
		c.nodes = append(c.nodes, fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", c.random.IntN(255), c.random.IntN(255), c.random.IntN(255)))
	}
	return c
}

// Kinds are those of the objects that a corpus makes.
var Kinds = []vedette.Resource{
	{Kind: vedette.Kind{Name: "Pod"}, Version: "v1", Plural: "pods", Singular: "pod", ShortNames: []string{"po"}, Namespaced: true},
	{Kind: vedette.Kind{Group: "apps", Name: "ReplicaSet"}, Version: "v1", Plural: "replicasets", Singular: "replicaset", ShortNames: []string{"rs"}, Namespaced: true},
	{Kind: vedette.Kind{Group: "apps", Name: "Deployment"}, Version: "v1", Plural: "deployments", Singular: "deployment", ShortNames: []string{"deploy"}, Namespaced: true},
	{Kind: vedette.Kind{Name: "Service"}, Version: "v1", Plural: "services", Singular: "service", ShortNames: []string{"svc"}, Namespaced: true},
	{Kind: vedette.Kind{Name: "ConfigMap"}, Version: "v1", Plural: "configmaps", Singular: "configmap", ShortNames: []string{"cm"}, Namespaced: true},
}

// Next returns the next object. Workloads come one after the other, each as its
// Deployment, three ReplicaSets, 1 to 20 Pods, a Service and a ConfigMap: about
// six objects in ten are Pods.
func (c *Corpus) Next() Item {
	if len(c.queue) == 0 {
		c.queue = c.workload()
	}
	next := c.queue[0]
	c.queue = c.queue[1:]
	return next
}

// Objects returns the next n objects as the store is given them.
func (c *Corpus) Objects(n int) []vedette.Object {
	objects := make([]vedette.Object, n)
	for i := range objects {
		objects[i] = c.Next().Object
	}
	return objects
}

// Pod returns the next Pod and leaves other objects out.
func (c *Corpus) Pod() Item {
	for {
		if item := c.Next(); item.Object.Kind.Name == "Pod" {
			return item
		}
	}
}

// Touch returns an object as it is after a status update: with a new
// resourceVersion, and another time of its last transition.
func (c *Corpus) Touch(o vedette.Object) vedette.Object {
	old := o.ResourceVersion
	o.ResourceVersion = c.nextVersion()
	body := strings.Replace(string(o.Body), `"resourceVersion":"`+old+`"`, `"resourceVersion":"`+o.ResourceVersion+`"`, 1)
	if before, after, found := strings.Cut(body, `{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"`); found {
		body = before + `{"type":"Ready","status":"False","lastProbeTime":null,"lastTransitionTime":"` + c.time() + after[20:]
	}
	o.Body = []byte(body)
	return o
}

func (c *Corpus) hex(digits int) string {
	b := make([]byte, digits/2)
	for i := range b {
		b[i] = byte(c.random.Uint32())
	}
	return hex.EncodeToString(b)
}

func (c *Corpus) uid() string {
	h := c.hex(32)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
}

// suffixAlphabet are the characters of which Kubernetes makes suffixes of names.
const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"

func (c *Corpus) suffix(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = suffixAlphabet[c.random.IntN(len(suffixAlphabet))]
	}
	return string(b)
}

func (c *Corpus) nextVersion() string {
	c.version += 1 + c.random.IntN(9)
	return fmt.Sprint(c.version)
}

func (c *Corpus) time() string {
	return time.Unix(1_780_000_000+c.random.Int64N(10_000_000), 0).UTC().Format(time.RFC3339)
}

func (c *Corpus) pick(words ...string) string { return words[c.random.IntN(len(words))] }

// fill writes a template's variables, of which hex64 is another each time.
func (c *Corpus) fill(name string, vars map[string]string) []byte {
	text, err := templates.ReadFile("templates/" + name + ".json")
	if err != nil {
		panic(err) // the names are written in this package
	}
	return []byte(os.Expand(strings.TrimRight(strings.ReplaceAll(string(text), "$(", "\x00"), "\n"), func(key string) string {
		if key == "hex64" {
			return c.hex(64)
		}
		value, ok := vars[key]
		if !ok {
			panic("the template " + name + " has a variable that is not set: " + key)
		}
		return value
	}))
}

// document writes one object in both forms.
func (c *Corpus) document(template string, vars map[string]string) (body, raw []byte) {
	state := *c.source
	vars["managed"] = ""
	body = []byte(strings.ReplaceAll(string(c.fill(template, vars)), "\x00", "$("))
	*c.source = state // the same random values once more
	vars["managed"] = string(c.fill("managed", vars))
	raw = []byte(strings.ReplaceAll(string(c.fill(template, vars)), "\x00", "$("))
	return body, raw
}

func toJSON(m map[string]string) string {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(text)
}
