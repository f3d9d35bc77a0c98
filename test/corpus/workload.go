package corpus

import (
	"fmt"
	"maps"
	"time"

	"github.com/vedette-io/vedette"
)

// workload is what all objects of one Deployment have in common.
type workload struct {
	vars        map[string]string
	labels      map[string]string
	annotations map[string]string
}

func (c *Corpus) workload() []Item {
	w := c.newWorkload()
	deployment := c.deployment(w)
	items := []Item{deployment}
	var pods int
	for revision := range 3 {
		current := revision == 2
		replicas := 0
		if current {
			replicas = 1 + c.random.IntN(20)
			pods = replicas
		}
		items = append(items, c.replicaSet(w, deployment.Object, revision+1, replicas))
	}
	owner := items[len(items)-1].Object
	for range pods {
		items = append(items, c.pod(w, owner))
	}
	return append(items, c.otherObject(w, Kinds[3], "service", w.vars["workload"]),
		c.otherObject(w, Kinds[4], "configmap", w.vars["workload"]+"-config"))
}

func (c *Corpus) newWorkload() *workload {
	environment := []string{"prod", "staging", "canary"}[c.workloadCount%3]
	if environment == "prod" { // each application has all three
		c.team = c.pick("payments", "search", "identity", "logistics", "media", "growth", "platform", "risk")
		c.app = c.team[:4] + c.pick("gateway", "worker", "api", "frontend", "indexer", "scheduler", "importer") + fmt.Sprint(c.workloadCount/3)
	}
	team, app := c.team, c.app
	c.workloadCount++
	name := app + "-" + environment
	w := &workload{vars: map[string]string{
		"team": team, "app": app, "environment": environment, "workload": name, "namespace": team + "-" + environment,
		"tag": fmt.Sprintf("v%d.%d.%d-%s", c.random.IntN(5), c.random.IntN(40), c.random.IntN(20), c.hex(8)), "image": c.hex(64),
		"proxyImage": c.proxy,
		"port":       c.pick("8080", "8443", "3000", "5000"), "level": c.pick("info", "warn", "debug"),
		"flags": c.pick("a,b", "new-checkout", "none", "dark-mode,beta"),
		"cpu":   c.pick("1", "2", "500m"), "memory": c.pick("512", "1024", "2048"), "cpuRequest": c.pick("100", "250", "500"),
		"memoryRequest": c.pick("256", "512"),
		"delay":         fmt.Sprint(5 + c.random.IntN(30)), "patch": fmt.Sprint(c.random.IntN(4)),
	}}
	w.labels = map[string]string{"app": name, "team": team, "app.kubernetes.io/name": app, "app.kubernetes.io/managed-by": "spinnaker"}
	w.annotations = map[string]string{
		"artifact.spinnaker.io/location": w.vars["namespace"], "artifact.spinnaker.io/name": name,
		"artifact.spinnaker.io/type":       "kubernetes/deployment",
		"moniker.spinnaker.io/application": app, "moniker.spinnaker.io/cluster": "deployment " + name,
	}
	return w
}

// header returns an object without its body, and the variables for its body.
func (c *Corpus) header(w *workload, r vedette.Resource, name string) (vedette.Object, map[string]string) {
	created := c.time()
	at, err := time.Parse(time.RFC3339, created)
	if err != nil {
		panic(err) // cannot happen: it was formatted this way
	}
	o := vedette.Object{
		Key: vedette.Key{Kind: r.Kind, Namespace: w.vars["namespace"], Name: name}, UID: c.uid(), ResourceVersion: c.nextVersion(),
		APIVersion: r.APIVersion(),
		Created:    at.Unix(), Labels: maps.Clone(w.labels), Annotations: maps.Clone(w.annotations),
	}
	vars := maps.Clone(w.vars)
	maps.Copy(vars, map[string]string{"name": name, "kind": r.Kind.Name, "uid": o.UID, "version": o.ResourceVersion, "created": created,
		"ready":   c.time(),
		"started": c.time(), "generation": fmt.Sprint(1 + c.random.IntN(40)), "ownerUID": "", "podIP": "", "owners": "", "strategy": "",
		"conditions":          "",
		"templateAnnotations": toJSON(w.annotations)})
	return o, vars
}

func (c *Corpus) render(o vedette.Object, vars map[string]string, template string) Item {
	vars["labels"], vars["annotations"] = toJSON(o.Labels), toJSON(o.Annotations)
	body, raw := c.document(template, vars)
	o.Body = body
	return Item{Object: o, Raw: raw}
}

func (c *Corpus) deployment(w *workload) Item {
	o, vars := c.header(w, Kinds[2], w.vars["workload"])
	o.Annotations["deployment.kubernetes.io/revision"] = "3"
	vars["replicas"] = fmt.Sprint(1 + c.random.IntN(20))
	vars["strategy"] = `,"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}},"revisionHistoryLimit":10,"progressDeadlineSeconds":600`
	vars["conditions"] = `,"updatedReplicas":` + vars["replicas"] + `,"conditions":[{"type":"Available","status":"True","lastUpdateTime":"` +
		vars["ready"] +
		`","lastTransitionTime":"` + vars["ready"] + `","reason":"MinimumReplicasAvailable","message":"Deployment has minimum availability."}]`
	o.Summary = fmt.Appendf(nil, `{"replicas":%s,"ready":%s,"images":["registry.example.com/%s/%s:%s"],"_templateLabels":%s}`, vars["replicas"],
		vars["replicas"], vars["team"], vars["app"], vars["tag"], toJSON(o.Labels))
	return c.render(o, vars, "workload")
}

func (c *Corpus) replicaSet(w *workload, owner vedette.Object, revision, replicas int) Item {
	hash := c.suffix(10)
	o, vars := c.header(w, Kinds[1], w.vars["workload"]+"-"+hash)
	o.Labels["pod-template-hash"] = hash
	o.Annotations["deployment.kubernetes.io/revision"] = fmt.Sprint(revision)
	o.Owner = vedette.Owner{Kind: owner.Kind, Name: owner.Name, UID: owner.UID}
	vars["replicas"], vars["ownerUID"] = fmt.Sprint(replicas), owner.UID
	vars["owners"] = fmt.Sprintf(`,"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":%q,"uid":%q,"controller":true,"blockOwnerDeletion":true}]`, owner.Name, owner.UID)
	o.Summary = fmt.Appendf(nil, `{"replicas":%d,"ready":%d,"images":["registry.example.com/%s/%s:%s"],"_templateLabels":%s}`, replicas, replicas,
		vars["team"], vars["app"], vars["tag"], toJSON(o.Labels))
	return c.render(o, vars, "workload")
}

func (c *Corpus) pod(w *workload, owner vedette.Object) Item {
	o, vars := c.header(w, Kinds[0], owner.Name+"-"+c.suffix(5))
	o.Labels["pod-template-hash"] = owner.Labels["pod-template-hash"]
	o.Owner = vedette.Owner{Kind: owner.Kind, Name: owner.Name, UID: owner.UID}
	podIP := fmt.Sprintf("10.%d.%d.%d", c.random.IntN(255), c.random.IntN(255), c.random.IntN(255))
	maps.Copy(vars, map[string]string{"owner": owner.Name, "ownerUID": owner.UID, "suffix": c.suffix(5),
		"node": c.nodes[c.random.IntN(len(c.nodes))], "podIP": podIP,
		"hostIP": fmt.Sprintf("10.0.%d.%d", c.random.IntN(255), c.random.IntN(255)), "phase": "Running", "restarts": fmt.Sprint(c.restarts())})
	o.Summary = fmt.Appendf(nil, `{"phase":"Running","node":%q,"ip":%q,"_statuses":[%q,"istio-proxy"],"ready":[true,true],"restarts":[%s,0],"images":["registry.example.com/%s/%s:%s","docker.io/istio/proxyv2:1.24.%s"]}`,
		vars["node"], podIP, vars["app"], vars["restarts"], vars["team"], vars["app"], vars["tag"], vars["patch"])
	return c.render(o, vars, "pod")
}

func (c *Corpus) restarts() int {
	if c.random.IntN(10) > 0 {
		return 0
	}
	return c.random.IntN(50)
}

func (c *Corpus) otherObject(w *workload, r vedette.Resource, template, name string) Item {
	o, vars := c.header(w, r, name)
	vars["clusterIP"] = fmt.Sprintf("172.20.%d.%d", c.random.IntN(255), c.random.IntN(255))
	return c.render(o, vars, template)
}
