package task

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
)

// Get implements manifest.Cluster.
func (t *turn) Get(ctx context.Context, apiVersion, kind, namespace, name string) (manifest.Manifest, error) {
	return t.get(ctx, vedette.Target{Kind: kind, APIVersion: apiVersion, Namespace: namespace, Name: name})
}

// Version implements manifest.Cluster.
func (t *turn) Version(ctx context.Context, m manifest.Manifest) (vedette.Version, error) {
	out, err := t.ask(ctx, "Failed to find the version of "+m.FullName()+": ", vedette.VersionArgs{Manifest: m.JSON()})
	if err != nil {
		return vedette.Version{}, err
	}
	var v vedette.Version
	if err := json.Unmarshal(out.Result, &v); err != nil {
		return v, vedette.Errorf(vedette.Unavailable, "the agent's answer for the version of %s makes no sense", m.FullName())
	}
	return v, nil
}

// Namespaced implements manifest.Cluster. What the agent reports says enough of
// the kinds that it follows; the cluster is asked for others.
func (t *turn) Namespaced(ctx context.Context, apiVersion, kind string) (bool, error) {
	wanted := manifest.KindOf(apiVersion, kind)
	is := func(r vedette.Resource) bool {
		return r.Kind.Group == wanted.Group && strings.EqualFold(r.Kind.Name, wanted.Name)
	}
	feeds, err := t.tasks.cfg.Accounts.Feeds(ctx, t.account())
	if err != nil {
		return false, err
	}
	for _, f := range feeds {
		if is(f.Resource) {
			return f.Resource.Namespaced, nil
		}
	}
	all, err := t.tasks.kinds.of(ctx, t)
	if err != nil {
		return false, err
	}
	if at := slices.IndexFunc(all, is); at >= 0 {
		return all[at].Namespaced, nil
	}
	return false, vedette.Errorf(vedette.NotFound, "the cluster of %s serves no kind %s", t.account(), wanted)
}

// kinds keeps for a short time which kinds an account's cluster serves, so that
// a deployment of many manifests asks once.
type kinds struct {
	mu    sync.Mutex
	known map[vedette.AccountName]served
}

type served struct {
	resources []vedette.Resource
	at        time.Time
}

// kindsAge is short because a kind may be defined and used right after.
const kindsAge = 10 * time.Second

func (k *kinds) of(ctx context.Context, t *turn) ([]vedette.Resource, error) {
	k.mu.Lock()
	found, ok := k.known[t.account()]
	k.mu.Unlock()
	if ok && time.Since(found.at) < kindsAge {
		return found.resources, nil
	}
	resources, err := t.discover(ctx)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		k.known = map[vedette.AccountName]served{}
	}
	for account, old := range k.known {
		if time.Since(old.at) >= kindsAge {
			delete(k.known, account)
		}
	}
	k.known[t.account()] = served{resources, time.Now()}
	return resources, nil
}

func (t *turn) discover(ctx context.Context) ([]vedette.Resource, error) {
	out, err := t.ask(ctx, "Failed to ask the cluster which kinds it serves: ", vedette.DiscoverArgs{})
	if err != nil {
		return nil, err
	}
	var d struct {
		Kinds []struct {
			Kind, Group, Version string
			Namespaced           bool
		}
	}
	if err := json.Unmarshal(out.Result, &d); err != nil {
		return nil, vedette.Errorf(vedette.Unavailable, "the agent's answer for the kinds of %s makes no sense", t.account())
	}
	var all []vedette.Resource
	for _, k := range d.Kinds {
		all = append(all, vedette.Resource{Kind: vedette.Kind{Group: k.Group, Name: k.Kind}, Version: k.Version, Namespaced: k.Namespaced})
	}
	return all, nil
}
