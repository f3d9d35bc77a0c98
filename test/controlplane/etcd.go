//go:build unix

package controlplane

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
)

// etcdURL is the URL of etcd's socket. Its host is never looked up.
const etcdURL = "http://etcd"

func socketClient(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		},
	}}
}

// Compact makes etcd forget every revision before the current one.
//
// This alone does not make a watch fail that resumes from an old resourceVersion: the API server's
// watch cache remembers the changes since its start (some hundred to ten thousand per kind) and
// serves them without etcd. For that, use Expire.
func (p *Plane) Compact(ctx context.Context) error {
	revision, err := p.revision(ctx)
	if err != nil {
		return err
	}
	return p.compact(ctx, revision)
}

// Expire makes every earlier resourceVersion too old: a watch that resumes from one gets 410 Gone,
// as after a long absence. It increases etcd's revision, compacts, and restarts the API server,
// whose new watch cache begins after that. Open watches break.
func (p *Plane) Expire(ctx context.Context) error {
	p.KillAPIServer() // first, so that nothing is written between the steps below
	revision, err := p.advanceRevision(ctx)
	if err != nil {
		return err
	}
	if err := p.compact(ctx, revision); err != nil {
		return err
	}
	return p.StartAPIServer(ctx)
}

// Stored is an object as the API server would store it.
type Stored struct {
	Resource, Namespace, Name string // for example configmaps, default, a
	Object                    Object // with apiVersion, kind and a uid
}

func (s Stored) key() string { return "/registry/" + s.Resource + "/" + s.Namespace + "/" + s.Name }

// maxTxnPuts is the number of operations that etcd accepts in one transaction.
const maxTxnPuts = 128

// Store writes objects into etcd while the API server is down, in a fraction of the time that
// creating them would take. The objects are not validated and get no defaults. Many get the same
// resourceVersion, in the middle of which a watch cannot resume, so call Expire afterwards.
func (p *Plane) Store(ctx context.Context, objects []Stored) error {
	for chunk := range slices.Chunk(objects, maxTxnPuts) {
		var puts []Object
		for _, o := range chunk {
			value, err := json.Marshal(o.Object)
			if err != nil {
				return err
			}
			puts = append(puts, Object{"requestPut": Object{"key": encodeKey(o.key()), "value": value}})
		}
		if err := p.callEtcd(ctx, "/v3/kv/txn", Object{"success": puts}, nil); err != nil {
			return fmt.Errorf("store %d objects: %w", len(objects), err)
		}
	}
	return nil
}

// DeleteStored deletes the objects of a namespace whose names begin with prefix from etcd, as
// written by Store.
func (p *Plane) DeleteStored(ctx context.Context, resource, namespace, prefix string) error {
	first := Stored{Resource: resource, Namespace: namespace, Name: prefix}.key()
	last := first[:len(first)-1] + string(first[len(first)-1]+1)
	return p.callEtcd(ctx, "/v3/kv/deleterange", Object{"key": encodeKey(first), "range_end": encodeKey(last)}, nil)
}

// header is part of every response of etcd.
type header struct {
	Header struct {
		Revision int64 `json:",string"`
	}
}

// revision returns etcd's current revision.
func (p *Plane) revision(ctx context.Context) (int64, error) {
	var answer header
	err := p.callEtcd(ctx, "/v3/kv/range", Object{"key": encodeKey("vedette")}, &answer)
	return answer.Header.Revision, err
}

// advanceRevision writes a key that Kubernetes does not read, and returns the new revision.
func (p *Plane) advanceRevision(ctx context.Context) (int64, error) { return p.Mark(ctx, "vedette") }

func (p *Plane) compact(ctx context.Context, revision int64) error {
	body := Object{"revision": fmt.Sprint(revision), "physical": true}
	if err := p.callEtcd(ctx, "/v3/kv/compaction", body, nil); err != nil {
		return fmt.Errorf("compact to revision %d: %w", revision, err)
	}
	return nil
}

func encodeKey(key string) string { return base64.StdEncoding.EncodeToString([]byte(key)) }

// callEtcd posts to etcd's JSON gateway.
func (p *Plane) callEtcd(ctx context.Context, path string, body, into any) error {
	r := apiRequest{http.MethodPost, path, "application/json", body}
	if err := send(ctx, p.etcd, etcdURL, r, into); err != nil {
		return fmt.Errorf("call etcd: %w", err)
	}
	return nil
}
