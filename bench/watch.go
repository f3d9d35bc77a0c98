package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/vedette-io/vedette"
)

// watchCommand is the argument with which bench runs itself as a client that only watches.
const watchCommand = "watch"

// watchAndDiscard watches kinds of clusters, discards what it receives, and prints "done" as soon as all
// watches have begun. That is the least that a program in Go can do, with net/http and one connection a
// cluster, and so what the agent's processor time is compared with. The arguments are the kinds,
// separated by commas, and the kubeconfigs.
func watchAndDiscard(args []string) error {
	var group, lists errgroup.Group
	lists.SetLimit(20)
	for _, kubeconfig := range args[1:] {
		cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return err
		}
		client, err := rest.HTTPClientFor(cfg)
		if err != nil {
			return err
		}
		for kind := range strings.SplitSeq(args[0], ",") {
			url := cfg.Host + listPath(vedette.ParseKind(kind))
			lists.Go(func() error {
				body, err := beginWatch(client, url)
				if err != nil {
					return err
				}
				group.Go(func() error {
					defer body.Close()
					_, err := io.Copy(io.Discard, body)
					return err
				})
				return nil
			})
		}
	}
	if err := lists.Wait(); err != nil {
		return err
	}
	fmt.Println("done")
	return group.Wait()
}

// listPath returns the path of a kind whose version is v1.
func listPath(kind vedette.Kind) string {
	resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: kind.Group, Version: "v1", Kind: kind.Name})
	if kind.Group == "" {
		return "/api/v1/" + resource.Resource
	}
	return "/apis/" + kind.Group + "/v1/" + resource.Resource
}

// beginWatch lists a kind and returns a watch from there.
func beginWatch(client *http.Client, url string) (io.ReadCloser, error) {
	resp, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", url, resp.Status, err)
	}
	watch, err := client.Get(url + "?watch=true&allowWatchBookmarks=true&timeoutSeconds=600&resourceVersion=" + list.Metadata.ResourceVersion)
	if err != nil {
		return nil, err
	}
	return watch.Body, nil
}

// startWatchAndDiscard runs watchAndDiscard in a process.
func (b *bench) startWatchAndDiscard(ctx context.Context, accounts []account) (*program, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{watchCommand, strings.Join(accounts[0].kinds, ",")}
	for _, a := range accounts {
		args = append(args, a.kubeconfig)
	}
	p, err := b.start("watch", nil, self, args...)
	if err != nil {
		return nil, err
	}
	return p, await(ctx, "all watches to begin", 100*time.Millisecond, func() (bool, error) {
		output, err := os.ReadFile(p.log)
		return strings.HasPrefix(string(output), "done"), err
	}, p)
}
