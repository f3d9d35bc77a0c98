package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette/test/chaos/history"
	"github.com/vedette-io/vedette/test/controlplane"
)

// kinds are the kinds that agents report, by the lower-case names that requests have.
var kinds = map[string]struct{ path, kind, plural string }{
	"configmap":  {"/api/v1/namespaces/%s/configmaps", "ConfigMap.", "configmaps"},
	"deployment": {"/apis/apps/v1/namespaces/%s/deployments", "Deployment.apps", "deployments"},
}

// recorder records all versions of the objects of a namespace, from the clusters themselves.
type recorder struct {
	began     time.Time
	namespace string

	mu       sync.Mutex
	versions map[string][]history.Version // by object
	creators map[string][]string          // by operation that creates an object of a new name: the names
	planes   []*recordedPlane             // by account
	restores map[string]time.Duration     // by account: when its cluster was restored for the first time
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

// recordedPlane is a cluster whose changes are recorded, from its etcd: nothing is missed while its API server is down.
type recordedPlane struct {
	plane   *controlplane.Plane
	account string
	next    int64  // revision of the first change that is not recorded
	stop    func() // ends the watch, and waits for its end
}

// start records the changes of a cluster from its next revision on, until stop is called or ctx ends.
func (r *recorder) start(ctx context.Context, p *recordedPlane) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	p.stop = func() { cancel(); <-ended }
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			err := p.plane.WatchStored(ctx, registryPrefix, r.nextOf(p), func(c controlplane.StoredChange) error { return r.take(p, c) })
			if _, isLost := errors.AsType[*lostChangesError](err); isLost || err != nil && strings.Contains(err.Error(), "compacted") {
				r.fail(fmt.Errorf("watch %s: %w", p.account, err))
				return
			}
			sleep(ctx, 50*time.Millisecond) // etcd is restarted
		}
	}()
}

// registryPrefix is the prefix of all objects in etcd.
const registryPrefix = "/registry/"

// lostChangesError says that a change cannot be recorded.
type lostChangesError struct{ error }

func (r *recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = errors.Join(r.err, err)
}

func (r *recorder) nextOf(p *recordedPlane) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return p.next
}

// take records a change if it is of an object of the clients.
func (r *recorder) take(p *recordedPlane, c controlplane.StoredChange) error {
	for kind, k := range kinds {
		if !strings.HasPrefix(c.Key, registryPrefix+k.plural+"/"+r.namespace+"/") {
			continue
		}
		body := c.Value
		if body == nil {
			body = c.Previous
		}
		var o watchedObject
		if err := json.Unmarshal(body, &o); err != nil {
			return &lostChangesError{fmt.Errorf("%s at revision %d: %w", c.Key, c.Revision, err)}
		}
		r.add(p.account, kind, c, &o)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p.next = c.Revision + 1
	return nil
}

func (r *recorder) add(account, kind string, c controlplane.StoredChange, o *watchedObject) {
	v := history.Version{UID: o.Metadata.UID, Version: uint64(c.Revision), Value: o.value(kind), At: time.Since(r.began)}
	if c.Value == nil {
		v.Value = history.Absent
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	name := objectName(account, o.Metadata.Name)
	r.versions[name] = append(r.versions[name], v)
	if id := o.Metadata.Labels[creatorLabel]; id != "" && len(r.versions[name]) == 1 {
		r.creators[id] = append(r.creators[id], name)
	}
}

// drain waits until everything is recorded that etcd has stored. The API server must be down.
func (r *recorder) drain(ctx context.Context, p *recordedPlane) error {
	revision, err := p.plane.Mark(ctx, registryPrefix+"~chaos")
	for err == nil && r.nextOf(p) <= revision {
		sleep(ctx, 10*time.Millisecond)
		err = errors.Join(ctx.Err(), r.failure())
	}
	if err != nil {
		return fmt.Errorf("record what is stored in %s: %w", p.account, err)
	}
	return nil
}

// clusterState is how the objects of a cluster were at a revision.
type clusterState struct {
	next    int64
	objects map[string]history.Version
}

// state returns how the objects of a cluster are.
func (r *recorder) state(p *recordedPlane) clusterState {
	s := clusterState{r.nextOf(p), map[string]history.Version{}}
	for name, v := range r.last() {
		if strings.HasPrefix(name, p.account+"/") {
			s.objects[name] = v
		}
	}
	return s
}

// rewind records that a cluster has become as it was. Nothing may be recorded of it meanwhile.
func (r *recorder) rewind(p *recordedPlane, s clusterState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.next = s.next
	for name, versions := range r.versions {
		was, existed := s.objects[name] // otherwise it was absent
		if last := versions[len(versions)-1]; !strings.HasPrefix(name, p.account+"/") || existed && last == was || last.Value == history.Absent && was.Value == history.Absent {
			continue
		}
		was.At, was.IsRestored = time.Since(r.began), true
		r.versions[name] = append(versions, was)
	}
}

// noteRestore records when a cluster began to be restored.
func (r *recorder) noteRestore(account string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, wasBefore := r.restores[account]; !wasBefore {
		r.restores[account] = time.Since(r.began)
	}
}

// firstRestores returns when clusters were restored for the first time, by account.
func (r *recorder) firstRestores() map[string]time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.restores)
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

// isAmbiguous reports whether an object has had its last version twice, because its cluster was restored, and another value the first time. Nothing
// but its content tells the two apart (docs/guarantees.md, "Clusters that are restored from a backup").
func (r *recorder) isAmbiguous(object, value string) bool {
	versions := r.all()[object]
	if len(versions) == 0 {
		return false
	}
	last := versions[len(versions)-1]
	return slices.ContainsFunc(versions, func(v history.Version) bool {
		return v.UID == last.UID && v.Version == last.Version && v.Value == value
	})
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

func newRecorder(began time.Time, namespace string) *recorder {
	return &recorder{began: began, namespace: namespace, versions: map[string][]history.Version{}, creators: map[string][]string{}, restores: map[string]time.Duration{}}
}
