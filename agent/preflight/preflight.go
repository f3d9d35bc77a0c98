// Package preflight tries whether an agent could work with its configuration: whether it reaches the
// server and each cluster, and may read what it is configured to report. It changes nothing.
package preflight

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/version"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/internal/probe"
)

// Probes returns one probe for the server and one for each account.
func Probes(cfg agent.Config) []probe.Probe {
	server := probe.One("server "+cfg.Uplink.Target, func(ctx context.Context) (string, error) {
		return "accepts agents", uplink.Probe(ctx, cfg.Uplink)
	})
	return append([]probe.Probe{server}, AccountProbes(cfg)...)
}

// AccountProbes returns one probe for each account.
func AccountProbes(cfg agent.Config) (probes []probe.Probe) {
	for _, a := range cfg.Accounts {
		p := accountProbe{a, cfg.ConnectOptions}
		probes = append(probes, probe.Probe{Name: p.name(), Run: p.run})
	}
	return probes
}

// Issuers returns a line for each account whose credentials are neither in its kubeconfig nor in files that it names: who issues them.
// It connects to no cluster, and leaves out accounts that cannot be used.
func Issuers(cfg agent.Config) (lines []string) {
	for _, a := range cfg.Accounts {
		cluster, err := kube.Connect(a.Access, cfg.ConnectOptions)
		if err != nil {
			continue
		}
		if issuer := cluster.Issuer(); issuer != "" {
			lines = append(lines, fmt.Sprintf("account %s: credentials by %s", a.Name, issuer))
		}
		cluster.Close()
	}
	return lines
}

// CheckFiles reads the files that accounts name, and returns why they cannot be used. It connects to
// no cluster.
func CheckFiles(cfg agent.Config) error {
	var errs []error
	for _, a := range cfg.Accounts {
		cluster, err := kube.Connect(a.Access, cfg.ConnectOptions)
		if err != nil {
			errs = append(errs, fmt.Errorf("account %s: %w", a.Name, err))
			continue
		}
		cluster.Close()
	}
	return errors.Join(errs...)
}

type accountProbe struct {
	account agent.Account
	options kube.Options
}

func (p accountProbe) name() string { return "account " + string(p.account.Name) }

// run returns a result for the connection and, if that works, one for the rights.
func (p accountProbe) run(ctx context.Context) []probe.Result {
	cluster, err := kube.Connect(p.account.Access, p.options)
	if err != nil {
		return []probe.Result{{Name: p.name(), Err: err}}
	}
	defer cluster.Close()
	identity, _, err := cluster.Identify(ctx)
	if err != nil {
		return []probe.Result{{Name: p.name(), Err: err}}
	}
	detail := fmt.Sprintf("%s at %s", identity.Version, identity.Host)
	if issuer := cluster.Issuer(); issuer != "" {
		detail += "; credentials by " + issuer
	}
	if identity.UID == "" {
		detail += "; the agent may not get namespace kube-system, so the cluster is identified by its address and certificate only"
	}
	if reason, message := version.Untested(identity.Version); reason != "" {
		detail += "; " + message
	}
	rights := probe.Result{Name: p.name() + " rights"}
	rights.Detail, rights.Err = p.checkRights(ctx, cluster)
	return []probe.Result{{Name: p.name(), Detail: detail}, rights}
}

// maxConcurrentRequests bounds the requests to one API server.
const maxConcurrentRequests = 4

// checkRights sends the first requests of each feed of the account.
func (p accountProbe) checkRights(ctx context.Context, cluster *kube.Cluster) (detail string, err error) {
	catalogue, err := cluster.Discover(ctx)
	if err != nil {
		return "", err
	}
	feeds, _ := p.account.Selection.Feeds(catalogue)
	feeds = slices.DeleteFunc(feeds, func(f watch.FeedSpec) bool { return f.Objects != nil })
	problems := make([]error, len(feeds))
	var group errgroup.Group
	group.SetLimit(maxConcurrentRequests)
	for i, f := range feeds {
		group.Go(func() error { problems[i] = tryFeed(ctx, cluster, f); return nil })
	}
	_ = group.Wait() // no function returns an error
	return summary(feeds, problems, p.account.Selection.Problem(catalogue))
}

// noObject is the name in the requests. No object has it, so that nothing of the cluster is read.
// RBAC decides about such a request as about one for all objects.
const noObject = "vedette-check-reads-nothing"

// tryFeed lists and watches the objects of a feed.
func tryFeed(ctx context.Context, cluster *kube.Cluster, f watch.FeedSpec) error {
	query := url.Values{"fieldSelector": {"metadata.name=" + noObject}, "limit": {"1"}}
	request := kube.GetRequest{Path: f.ListPath(), Query: query, Accept: kube.AcceptMetadataList + "," + kube.AcceptJSON}
	response, err := cluster.Get(ctx, cluster.Timeouts(), request)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	response.Body.Close()
	query.Del("limit")
	query.Set("watch", "true")
	query.Set("timeoutSeconds", "1")
	request.Accept = kube.AcceptJSON
	if response, err = cluster.Watch(ctx, cluster.Timeouts(), request); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	return response.Body.Close()
}

// maxNamed is how many feeds a message names.
const maxNamed = 10

// summary describes which feeds can be read, and what is wrong with their selection.
func summary(feeds []watch.FeedSpec, problems []error, selectionProblem string) (detail string, err error) {
	var denied, others []string
	for i, problem := range problems {
		switch {
		case problem == nil:
		case kube.StatusCode(problem) == 403:
			denied = append(denied, feedName(feeds[i]))
		default:
			others = append(others, fmt.Sprintf("%s (%v)", feedName(feeds[i]), problem))
		}
	}
	var texts []string
	if selectionProblem != "" {
		texts = append(texts, selectionProblem)
	}
	if len(denied) > 0 {
		texts = append(texts, fmt.Sprintf("RBAC denies %d of %d feeds: %s: allow the agent's user to list and watch them, or leave them out of kinds",
			len(denied), len(feeds), abbreviate(denied)))
	}
	if len(others) > 0 {
		texts = append(texts, "cannot read "+abbreviate(others))
	}
	if len(texts) > 0 {
		return "", vedette.Errorf(vedette.Denied, "%s", strings.Join(texts, "; "))
	}
	return fmt.Sprintf("may list and watch all %d feeds", len(feeds)), nil
}

func feedName(f watch.FeedSpec) string {
	if f.Namespace == "" {
		return f.Kind.String()
	}
	return f.Kind.String() + " in " + f.Namespace
}

func abbreviate(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
