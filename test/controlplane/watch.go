//go:build unix

package controlplane

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// StoredChange is a change of a key, as etcd has it.
type StoredChange struct {
	Key      string // for example /registry/configmaps/default/a
	Revision int64  // the resourceVersion
	Value    []byte // as the API server stores it; nil if the key was deleted
	Previous []byte // the value before; nil if there was none
}

// WatchStored calls change for each change of the keys with a prefix, from a revision on and in order. It ends with an error when
// ctx does, when etcd does, or when change returns one. It needs no API server, and misses nothing that happened while one was
// down.
func (p *Plane) WatchStored(ctx context.Context, prefix string, from int64, change func(StoredChange) error) error {
	last := prefix[:len(prefix)-1] + string(prefix[len(prefix)-1]+1)
	create := Object{"create_request": Object{"key": encodeKey(prefix), "range_end": encodeKey(last), "start_revision": fmt.Sprint(from),
		"prev_kv": true}}
	body, err := json.Marshal(create)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, etcdURL+"/v3/watch", strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	response, err := p.etcd.Do(request)
	if err != nil {
		return fmt.Errorf("watch etcd: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("watch etcd: %s", response.Status)
	}
	for messages := json.NewDecoder(response.Body); ; {
		var m watchMessage
		if err := messages.Decode(&m); err != nil {
			return fmt.Errorf("watch etcd: %w", err)
		}
		if m.Result.Canceled || m.Error != nil {
			return fmt.Errorf("watch etcd from revision %d: it has ended the watch: %s %s", from, m.Result.Reason, m.Error)
		}
		for _, e := range m.Result.Events {
			c, err := e.change()
			if err == nil {
				err = change(c)
			}
			if err != nil {
				return err
			}
		}
	}
}

// watchMessage is what etcd's JSON gateway sends.
type watchMessage struct {
	Result struct {
		Canceled bool
		Reason   string `json:"cancel_reason"`
		Events   []watchEvent
	}
	Error json.RawMessage
}

type watchEvent struct {
	Type string // empty for PUT
	KV   struct {
		Key, Value  string
		ModRevision int64 `json:"mod_revision,string"`
	}
	Previous *struct{ Value string } `json:"prev_kv"`
}

func (e watchEvent) change() (StoredChange, error) {
	key, err := base64.StdEncoding.DecodeString(e.KV.Key)
	if err != nil {
		return StoredChange{}, err
	}
	c := StoredChange{Key: string(key), Revision: e.KV.ModRevision}
	if e.Type != "DELETE" {
		if c.Value, err = base64.StdEncoding.DecodeString(e.KV.Value); err != nil {
			return StoredChange{}, err
		}
	}
	if e.Previous != nil {
		c.Previous, err = base64.StdEncoding.DecodeString(e.Previous.Value)
	}
	return c, err
}

// Mark writes a key that Kubernetes does not read, and returns its revision: everything that etcd has stored before has a lower one.
func (p *Plane) Mark(ctx context.Context, key string) (int64, error) {
	var answer header
	err := p.callEtcd(ctx, "/v3/kv/put", Object{"key": encodeKey(key), "value": ""}, &answer)
	return answer.Header.Revision, err
}
