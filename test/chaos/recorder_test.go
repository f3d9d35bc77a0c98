package chaos

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/vedette-io/vedette/test/chaos/history"
	"github.com/vedette-io/vedette/test/controlplane"
)

// kinds are the kinds that agents report, by the lower-case names that requests have.
var kinds = map[string]struct{ path, kind string }{
	"configmap":  {"/api/v1/namespaces/%s/configmaps", "ConfigMap."},
	"deployment": {"/apis/apps/v1/namespaces/%s/deployments", "Deployment.apps"},
}

// recorder records all versions of the objects of a namespace, from the clusters themselves.
type recorder struct {
	began time.Time

	mu       sync.Mutex
	versions map[string][]history.Version // by object
	creators map[string][]string          // by operation that creates an object of a new name: the names
	err      error
}

// objectName names an object over all accounts, without its kind: a name belongs to one kind.
func objectName(account, name string) string { return account + "/" + name }

// watchedObject is what is recorded of an object.
type watchedObject struct {
	Metadata struct {
		Name, UID, ResourceVersion string
		Labels                     map[string]string
	}
	Data struct{ Value string }
	Spec struct{ Replicas float64 } // Clouddriver writes 7.0
}

// value returns the value of an object as operations write it.
func (o *watchedObject) value(kind string) string {
	if kind == "deployment" {
		return strconv.Itoa(int(o.Spec.Replicas))
	}
	return o.Data.Value
}

// record watches a kind of a namespace until ctx ends. The namespace must be empty.
func (r *recorder) record(ctx context.Context, plane *controlplane.Plane, account, namespace, kind string) {
	err := r.watch(ctx, plane, account, namespace, kind)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		r.err = fmt.Errorf("watch the %ss of %s: %w", kind, account, err)
	}
}

func (r *recorder) watch(ctx context.Context, plane *controlplane.Plane, account, namespace, kind string) error {
	path := fmt.Sprintf(kinds[kind].path, namespace)
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []watchedObject
	}
	if err := plane.Get(ctx, path, &list); err != nil {
		return err
	}
	if len(list.Items) > 0 {
		return fmt.Errorf("the namespace has %d objects already", len(list.Items))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, plane.URL+path+"?watch=true&timeoutSeconds=86400&resourceVersion="+list.Metadata.ResourceVersion, nil)
	if err != nil {
		return err
	}
	response, err := plane.Client().Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	for lines := json.NewDecoder(response.Body); ; {
		var e struct {
			Type   string
			Object watchedObject
		}
		if err := lines.Decode(&e); err != nil {
			return err
		}
		if e.Type == "ERROR" {
			return fmt.Errorf("the API server ends the watch")
		}
		if err := r.add(account, kind, e.Type == "DELETED", &e.Object); err != nil {
			return err
		}
	}
}

func (r *recorder) add(account, kind string, isDeleted bool, o *watchedObject) error {
	version, err := strconv.ParseUint(o.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return err
	}
	v := history.Version{UID: o.Metadata.UID, Version: version, Value: o.value(kind), At: time.Since(r.began)}
	if isDeleted {
		v.Value = history.Absent
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	name := objectName(account, o.Metadata.Name)
	r.versions[name] = append(r.versions[name], v)
	if id := o.Metadata.Labels[creatorLabel]; id != "" && len(r.versions[name]) == 1 {
		r.creators[id] = append(r.creators[id], name)
	}
	return nil
}

// creatorLabel is the label of objects that have the name that the API server chose. It is the operation that created them.
const creatorLabel = "chaos-operation"

// all returns all versions so far.
func (r *recorder) all() map[string][]history.Version {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string][]history.Version{}
	for name, versions := range r.versions {
		all[name] = slices.Clone(versions)
	}
	return all
}

// last returns the last version of each object.
func (r *recorder) last() map[string]history.Version {
	last := map[string]history.Version{}
	for name, versions := range r.all() {
		last[name] = versions[len(versions)-1]
	}
	return last
}

// created returns the objects that an operation has created.
func (r *recorder) created(id string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.creators[id])
}

// failure returns why the recorder has stopped early; nil if it has not.
func (r *recorder) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func newRecorder(began time.Time) *recorder {
	return &recorder{began: began, versions: map[string][]history.Version{}, creators: map[string][]string{}}
}

// sortedVersions orders versions by resourceVersion.
func sortedVersions(versions []history.Version) []history.Version {
	slices.SortFunc(versions, func(a, b history.Version) int { return cmp.Compare(a.Version, b.Version) })
	return versions
}
