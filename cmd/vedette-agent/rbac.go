package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/rbac"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/internal/nearest"
	"github.com/vedette-io/vedette/internal/program"
)

// rulesOptions are the flags of the command rbac.
type rulesOptions struct {
	kinds, changed string // separated by commas
	readOnly       bool
}

// newRulesCommand returns the command rbac, which prints the RBAC rules that an account needs. It
// belongs to the agent, because only the agent has the credentials whose rights matter.
func newRulesCommand() program.Command[*config.Config] {
	var o rulesOptions
	return program.Command[*config.Config]{
		AddFlags: func(flags *flag.FlagSet) {
			flags.StringVar(&o.kinds, "kinds", "", "")
			flags.StringVar(&o.changed, "change", "", "")
			flags.BoolVar(&o.readOnly, "read-only", false, "")
		},
		Run: func(ctx context.Context, cfg *config.Config, args []string, out, errOut io.Writer) error {
			account, err := findAccount(cfg, args)
			if err != nil {
				return err
			}
			return o.print(ctx, cfg, account, out, errOut)
		},
	}
}

// findAccount returns the account that the arguments name, or the only one.
func findAccount(cfg *config.Config, args []string) (config.Account, error) {
	accounts := cfg.Kubernetes.Accounts
	var names []string
	for _, a := range accounts {
		names = append(names, string(a.Name))
	}
	for _, r := range cfg.RejectedAccounts {
		if len(args) == 1 && r.Name == args[0] {
			return config.Account{}, fmt.Errorf("account %s is left out of the configuration: %w", args[0], r.Reason)
		}
	}
	switch {
	case len(args) > 1:
		return config.Account{}, vedette.Errorf(vedette.Invalid, "rbac takes one account, got %s", strings.Join(args, " "))
	case len(args) == 0 && len(accounts) == 1:
		return accounts[0], nil
	case len(accounts) == 0:
		return config.Account{}, vedette.Errorf(vedette.NotFound, "the configuration has no accounts: add them as kubernetes.accounts")
	case len(args) == 0:
		return config.Account{}, vedette.Errorf(vedette.Invalid, "name one of the %d accounts of the configuration: %s", len(accounts),
			nearest.List(names))
	}
	at := slices.Index(names, args[0])
	if at < 0 {
		return config.Account{}, vedette.Errorf(vedette.NotFound, "the configuration has no account %q%s", args[0],
			cmp.Or(nearest.Hint(args[0], names), ": "+nearest.There(names, "accounts")))
	}
	return accounts[at], nil
}

// print writes the rules to out, and to errOut what they do not show.
func (o rulesOptions) print(ctx context.Context, cfg *config.Config, account config.Account, out, errOut io.Writer) error {
	settings := newAccount(cfg, account)
	cluster, err := kube.Connect(settings.Access, kube.Options{})
	if err != nil {
		return fmt.Errorf("account %s: %w", account.Name, err)
	}
	defer cluster.Close()
	catalogue, err := cluster.Discover(ctx)
	if err != nil {
		return fmt.Errorf("account %s: %w", account.Name, err)
	}
	needs, unserved := o.needs(settings.Selection, catalogue)
	needs.Metrics = account.Metrics
	if servers, ok := cfg.BalancedServers(); ok && account.ServiceAccount { // the agent asks with the credentials of its pod
		needs.Servers = servers.Namespace
	}
	report, err := rbac.NewReport(ctx, cluster, cluster.Host(), settings.Name, needs)
	if err != nil {
		return fmt.Errorf("account %s: %w", account.Name, cluster.Explain(err))
	}
	for _, kind := range unserved {
		fmt.Fprintf(errOut, "no rule for %s: the cluster does not serve this kind\n", kind)
	}
	if len(account.Kinds) == 0 && o.kinds == "" {
		fmt.Fprintln(errOut, "the account configures no kinds: if the server does, name them with --kinds")
	}
	return report.Write(out)
}

// needs returns what the flags and the selection of an account ask for, and the kinds that are not
// served.
func (o rulesOptions) needs(s watch.Selection, catalogue kube.Catalogue) (needs rbac.Needs, unserved []string) {
	if len(s.Kinds) == 0 {
		s.Kinds = splitKinds(o.kinds)
	}
	needs = rbac.Needs{OnlyNamespaced: s.OnlyNamespaced, ReadOnly: o.readOnly}
	needs.Cached, unserved = s.Feeds(catalogue)
	for _, namespace := range s.Namespaces {
		if !slices.Contains(s.OmitNamespaces, namespace) && !slices.Contains(needs.Namespaces, namespace) {
			needs.Namespaces = append(needs.Namespaces, namespace)
		}
	}
	if o.changed == "" {
		return needs, unserved
	}
	changed := watch.Selection{Kinds: splitKinds(o.changed), Namespaces: s.Namespaces, OmitNamespaces: s.OmitNamespaces,
		OnlyNamespaced: s.OnlyNamespaced}
	feeds, unknown := changed.Feeds(catalogue)
	needs.Changed = feeds
	return needs, append(unserved, unknown...)
}

func splitKinds(list string) (kinds []string) {
	for _, kind := range strings.Split(list, ",") {
		if kind = strings.TrimSpace(kind); kind != "" {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
