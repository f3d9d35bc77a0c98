package task

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/manifest"
)

// Get implements manifest.Cluster.
func (t *opContext) Get(ctx context.Context, apiVersion, kind, namespace, name string) (manifest.Manifest, error) {
	return t.get(ctx, vedette.Target{Kind: kind, APIVersion: apiVersion, Namespace: namespace, Name: name})
}

// Version implements manifest.Cluster.
func (t *opContext) Version(ctx context.Context, m manifest.Manifest) (vedette.Version, error) {
	out, err := t.query(ctx, "Failed to find the version of "+m.FullName()+": ", vedette.VersionArgs{Manifest: m.JSON()})
	if err != nil {
		return vedette.Version{}, err
	}
	var v vedette.Version
	if err := exactjson.Unmarshal(out.Result, &v, bodyLimits); err != nil {
		return v, vedette.Errorf(vedette.Unavailable, "the agent sent an invalid answer about the version of %s", m.FullName())
	}
	return v, nil
}

// Namespaced implements manifest.Cluster. It uses the kinds that the agent reports, and asks
// the cluster for other kinds.
func (t *opContext) Namespaced(ctx context.Context, apiVersion, kind string) (bool, error) {
	want := manifest.KindOf(apiVersion, kind)
	feeds, err := t.tasks.cfg.Accounts.Feeds(ctx, t.account())
	if err != nil {
		return false, err
	}
	for _, f := range feeds {
		if f.Resource.Kind == want {
			return f.Resource.Namespaced, nil
		}
	}
	all, err := t.tasks.kinds.get(ctx, t)
	if err != nil {
		return false, err
	}
	found := slices.DeleteFunc(slices.Clone(all), func(r vedette.Resource) bool {
		return r.Kind.Group != want.Group || !strings.EqualFold(r.Kind.Name, want.Name)
	})
	if found = vedette.PreferExact(found, want.Name); len(found) > 0 {
		return found[0].Namespaced, nil
	}
	return false, vedette.Errorf(vedette.NotFound, "the cluster of %s does not serve the kind %s", t.account(), want)
}

// kindCache caches the kinds of an account's cluster for a short time, so that a deployment of
// many manifests asks once.
type kindCache struct {
	mu      sync.Mutex
	entries map[vedette.AccountName]servedKinds
}

type servedKinds struct {
	resources []vedette.Resource
	fetchedAt time.Time
}

// kindCacheTTL is short because a kind can be defined and used right after.
const kindCacheTTL = 10 * time.Second

func (k *kindCache) get(ctx context.Context, t *opContext) ([]vedette.Resource, error) {
	k.mu.Lock()
	entry, ok := k.entries[t.account()]
	k.mu.Unlock()
	if ok && time.Since(entry.fetchedAt) < kindCacheTTL {
		return entry.resources, nil
	}
	resources, err := t.fetchKinds(ctx)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.entries == nil {
		k.entries = map[vedette.AccountName]servedKinds{}
	}
	for account, old := range k.entries {
		if time.Since(old.fetchedAt) >= kindCacheTTL {
			delete(k.entries, account)
		}
	}
	k.entries[t.account()] = servedKinds{resources, time.Now()}
	return resources, nil
}

func (t *opContext) fetchKinds(ctx context.Context) ([]vedette.Resource, error) {
	out, err := t.query(ctx, "Failed to ask the cluster which kinds it serves: ", vedette.DiscoverArgs{})
	if err != nil {
		return nil, err
	}
	var d struct {
		Kinds []struct {
			Kind       string `json:"kind"`
			Group      string `json:"group"`
			Version    string `json:"version"`
			Namespaced bool   `json:"namespaced"`
		} `json:"kinds"`
	}
	if err := exactjson.Unmarshal(out.Result, &d, bodyLimits); err != nil {
		return nil, vedette.Errorf(vedette.Unavailable, "the agent sent an invalid answer about the kinds of %s", t.account())
	}
	var all []vedette.Resource
	for _, k := range d.Kinds {
		all = append(all, vedette.Resource{Kind: vedette.Kind{Group: k.Group, Name: k.Kind}, Version: k.Version, Namespaced: k.Namespaced})
	}
	return all, nil
}
