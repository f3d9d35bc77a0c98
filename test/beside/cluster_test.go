package beside

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette/test/beside/standin"
	"github.com/vedette-io/vedette/test/controlplane"
)

// The accounts of the test, each of which is one cluster.
const (
	east = "east"
	west = "west"
)

const (
	namespace        = "beside"
	applicationCount = 20
	// newcomer is an application that only the cluster of west has, and that the stand-in does not know.
	newcomer = "newcomer"
)

func applicationName(i int) string { return fmt.Sprintf("app%02d", i%applicationCount) }

// cluster is a control plane with workloads.
type cluster struct {
	*controlplane.Plane
	account string
	objects []standin.Object
}

// startClusters starts one control plane for each account, and creates the workloads.
func startClusters(t testing.TB, accounts ...string) map[string]*cluster {
	t.Helper()
	started := make([]*cluster, len(accounts))
	group, ctx := errgroup.WithContext(t.Context())
	for i, account := range accounts {
		group.Go(func() error {
			plane, err := controlplane.Start(ctx, controlplane.Options{Controllers: true, Log: t.Output()})
			if err != nil {
				return err
			}
			started[i] = &cluster{Plane: plane, account: account}
			return started[i].createWorkloads(ctx)
		})
	}
	err := group.Wait()
	clusters := map[string]*cluster{}
	for i, c := range started {
		if c == nil {
			continue
		}
		clusters[accounts[i]] = c
		t.Cleanup(func() {
			if err := c.Stop(); err != nil {
				t.Errorf("stop the control plane of %s: %v", c.account, err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range clusters {
		await(t, 2*time.Minute, "the workloads of "+c.account+" are there", c.readObjects)
	}
	return clusters
}

// createWorkloads creates the same applications in each cluster. Each has a Deployment, a ReplicaSet without
// one, and a Service for each.
func (c *cluster) createWorkloads(ctx context.Context) error {
	names := []string{}
	for i := range applicationCount {
		names = append(names, applicationName(i))
	}
	if c.account == west {
		names = append(names, newcomer)
	}
	core, apps := "/api/v1/namespaces/"+namespace, "/apis/apps/v1/namespaces/"+namespace
	if err := c.Apply(ctx, core, object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": namespace}}); err != nil {
		return err
	}
	policy := object{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": object{"name": "all"}, "spec": object{"podSelector": object{}}}
	if err := c.Apply(ctx, "/apis/networking.k8s.io/v1/namespaces/"+namespace+"/networkpolicies/all", policy); err != nil {
		return err
	}
	if isLong() || *clouddriverArguments != "" {
		if err := c.createFiller(ctx); err != nil {
			return err
		}
	}
	for _, name := range names {
		single := name + "-single-v000"
		for path, body := range map[string]object{
			apps + "/deployments/" + name:          newWorkload("Deployment", name, name, "deployment "+name),
			apps + "/replicasets/" + single:        newWorkload("ReplicaSet", single, name, "replicaSet "+name+"-single"),
			core + "/services/" + name:             newService(name, name, name),
			core + "/services/" + name + "-single": newService(name+"-single", name, single),
		} {
			if err := c.Apply(ctx, path, body); err != nil {
				return fmt.Errorf("create the workloads of %s: %w", c.account, err)
			}
		}
	}
	return nil
}

// filler is a namespace and an application with server groups that only make the first synchronization and answers long.
const (
	filler      = "filler"
	fillerCount = 1000
)

func (c *cluster) createFiller(ctx context.Context) error {
	if err := c.Apply(ctx, "/api/v1/namespaces/"+filler, object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": filler}}); err != nil {
		return err
	}
	for i := range fillerCount {
		body := newWorkload("ReplicaSet", fmt.Sprintf("%s-%d", filler, i), filler, "replicaSet "+filler)
		body["spec"].(object)["replicas"] = 0
		if err := c.Create(ctx, "/apis/apps/v1/namespaces/"+filler+"/replicasets", body); err != nil {
			return fmt.Errorf("create the filler of %s: %w", c.account, err)
		}
	}
	return nil
}

type object = controlplane.Object

// moniker returns the annotations by which Spinnaker knows what an object belongs to.
func moniker(application, cluster string) object {
	return object{"moniker.spinnaker.io/application": application, "moniker.spinnaker.io/cluster": cluster}
}

func newWorkload(kind, name, application, clusterName string) object {
	labels := object{"run": name}
	annotations := moniker(application, clusterName)
	return object{"apiVersion": "apps/v1", "kind": kind, "metadata": object{"name": name, "annotations": annotations}, "spec": object{
		"replicas": 1, "selector": object{"matchLabels": labels},
		"template": object{"metadata": object{"labels": labels, "annotations": annotations},
			"spec": object{"containers": []object{{"name": "main", "image": "registry.example.com/" + application + ":1"}}}}}}
}

func newService(name, application, run string) object {
	return object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": name, "annotations": moniker(application, "service "+name)},
		"spec": object{"selector": object{"run": run}, "ports": []object{{"port": 80}}}}
}

// readObjects reads what the cluster has in the namespace. It fails until all Pods are there and running.
func (c *cluster) readObjects(ctx context.Context) error {
	c.objects = nil
	pods := 0
	for _, list := range []struct{ path, kind, version string }{
		{"/api/v1/namespaces/" + namespace + "/pods", "Pod", "v1"},
		{"/api/v1/namespaces/" + namespace + "/services", "Service", "v1"},
		{"/apis/apps/v1/namespaces/" + namespace + "/deployments", "Deployment", "apps/v1"},
		{"/apis/apps/v1/namespaces/" + namespace + "/replicasets", "ReplicaSet", "apps/v1"},
		{"/apis/networking.k8s.io/v1/namespaces/" + namespace + "/networkpolicies", "NetworkPolicy", "networking.k8s.io/v1"},
	} {
		var answer struct{ Items []object }
		if err := c.Get(ctx, list.path, &answer); err != nil {
			return err
		}
		for _, item := range answer.Items {
			item["kind"], item["apiVersion"] = list.kind, list.version // elements of lists lack them
			delete(item["metadata"].(object), "managedFields")
			if status, _ := item["status"].(object); list.kind == "Pod" && status["phase"] == "Running" {
				pods++
			}
			if err := c.add(item); err != nil {
				return err
			}
		}
	}
	want := 2 * applicationCount
	if c.account == west {
		want += 2
	}
	if pods != want {
		return fmt.Errorf("got %d running Pods, want %d", pods, want)
	}
	return nil
}

func (c *cluster) add(item object) error {
	raw, err := json.Marshal(item)
	if err != nil {
		return err
	}
	parsed, err := standin.ParseObject(c.account, raw)
	c.objects = append(c.objects, parsed)
	return err
}

// operationLabel is the label of what operations create; its value is the clientRequestId.
const operationLabel = "example.com/operation"

// runs returns how often each operation ran in the cluster, by its clientRequestId. Each run creates one
// ConfigMap, whose name the cluster generates.
func (c *cluster) runs(ctx context.Context) (map[string]int, error) {
	var answer struct {
		Items []struct {
			Metadata struct{ Labels map[string]string }
		}
	}
	if err := c.Get(ctx, "/api/v1/namespaces/"+namespace+"/configmaps?labelSelector="+operationLabel, &answer); err != nil {
		return nil, fmt.Errorf("read which operations ran in %s: %w", c.account, err)
	}
	runs := map[string]int{}
	for _, item := range answer.Items {
		runs[item.Metadata.Labels[operationLabel]]++
	}
	return runs, nil
}
