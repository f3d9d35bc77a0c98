// Package corpus generates Kubernetes objects that resemble those of a busy cluster, for tests and
// benchmarks. What repeats in reality repeats here (labels, images, probes), and what does not is
// random (uids, addresses, hashes, times). The same seed generates the same objects.
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

// Corpus generates the objects of one cluster. It is not safe for concurrent use.
type Corpus struct {
	random        *rand.Rand
	source        *rand.PCG // the source of random
	version       int
	workloadCount int // number of workloads so far
	team          string
	app           string
	queue         []Item
	nodes         []string
	proxy         string // digest of the sidecar's image
}

// Item is an object in two forms: as stored, and as the API server sends it.
type Item struct {
	Object vedette.Object
	Raw    []byte // with managedFields
}

// New returns the corpus for a seed.
func New(seed uint64) *Corpus {
	source := rand.NewPCG(seed, seed)
	c := &Corpus{random: rand.New(source), source: source, version: 1_000_000 + int(seed%1000)*10_000}
	c.proxy = c.hex(64)
	for range 200 {
		c.nodes = append(c.nodes, fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", c.random.IntN(255), c.random.IntN(255),
			c.random.IntN(255)))
	}
	return c
}

// Kinds are the kinds of the generated objects.
var Kinds = []vedette.Resource{
	{Kind: vedette.Kind{Name: "Pod"}, Version: "v1", Plural: "pods", Singular: "pod", ShortNames: []string{"po"}, Namespaced: true},
	{Kind: vedette.Kind{Group: "apps", Name: "ReplicaSet"}, Version: "v1", Plural: "replicasets", Singular: "replicaset",
		ShortNames: []string{"rs"}, Namespaced: true},
	{Kind: vedette.Kind{Group: "apps", Name: "Deployment"}, Version: "v1", Plural: "deployments", Singular: "deployment",
		ShortNames: []string{"deploy"}, Namespaced: true},
	{Kind: vedette.Kind{Name: "Service"}, Version: "v1", Plural: "services", Singular: "service", ShortNames: []string{"svc"},
		Namespaced: true},
	{Kind: vedette.Kind{Name: "ConfigMap"}, Version: "v1", Plural: "configmaps", Singular: "configmap", ShortNames: []string{"cm"},
		Namespaced: true},
}

// Next returns the next object. Each workload consists of a Deployment, three ReplicaSets, 1 to 20
// Pods, a Service and a ConfigMap, so about six objects in ten are Pods.
func (c *Corpus) Next() Item {
	if len(c.queue) == 0 {
		c.queue = c.workload()
	}
	next := c.queue[0]
	c.queue = c.queue[1:]
	return next
}

// Objects returns the next n objects as stored.
func (c *Corpus) Objects(n int) []vedette.Object {
	objects := make([]vedette.Object, n)
	for i := range objects {
		objects[i] = c.Next().Object
	}
	return objects
}

// Pod returns the next Pod and skips other objects.
func (c *Corpus) Pod() Item {
	for {
		if item := c.Next(); item.Object.Kind.Name == "Pod" {
			return item
		}
	}
}

// Touch returns an object after a status update, with a new resourceVersion and a new transition
// time.
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

// suffixAlphabet are the characters in Kubernetes' generated name suffixes.
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

// fill replaces a template's variables. hex64 is different each time.
func (c *Corpus) fill(name string, vars map[string]string) []byte {
	text, err := templates.ReadFile("templates/" + name + ".json")
	if err != nil {
		panic(err) // cannot happen: the names are constants of this package
	}
	return []byte(os.Expand(strings.TrimRight(strings.ReplaceAll(string(text), "$(", "\x00"), "\n"), func(key string) string {
		if key == "hex64" {
			return c.hex(64)
		}
		value, ok := vars[key]
		if !ok {
			panic("template " + name + ": variable not set: " + key)
		}
		return value
	}))
}

// document generates one object in both forms.
func (c *Corpus) document(template string, vars map[string]string) (body, raw []byte) {
	state := *c.source
	vars["managed"] = ""
	body = []byte(strings.ReplaceAll(string(c.fill(template, vars)), "\x00", "$("))
	*c.source = state // use the same random values again
	vars["managed"] = string(c.fill("managed", vars))
	raw = []byte(strings.ReplaceAll(string(c.fill(template, vars)), "\x00", "$("))
	return body, raw
}

func toJSON(m map[string]string) string {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // cannot happen: strings always marshal
	}
	return string(text)
}
