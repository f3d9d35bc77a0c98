// Package completion completes accounts, namespaces, kinds, names and contexts for shells. It asks the server
// one small question per completion. It is silent if the server does not answer in time, or at all, because
// its output appears in the middle of what somebody types.
//
// The server answers from its inventory for accounts and kinds, and from the store for namespaces and names: different names,
// 200 at most, from 5,000 objects at most, after half a second at most. Lists of accounts would be a thousand times as large,
// and lists of objects begin with the first account. Names that a shell could execute or split are not offered: names are
// those of others. Values that the help lists are completed from the help. A test fails for a flag that would offer the files
// of the working directory by accident.
package completion

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vedette-io/vedette/internal/cli/connect"
	"github.com/vedette-io/vedette/internal/cli/contexts"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/internal/textcheck"
)

// timeout is how long a completion may take in all: a shell is blocked meanwhile.
const timeout = time.Second

// maxNames is how many names are offered. Nobody reads more; who types one more letter gets others.
const maxNames = 200

// function completes an argument, or the value of a flag.
type function = cobra.CompletionFunc

// Register adds completion to a command and all commands below it. What an argument or a flag takes is known by its
// name, and by the command's usage.
func Register(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if cmd.ValidArgsFunction == nil {
			cmd.ValidArgsFunction = ofArguments(cmd)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) { registerFlag(cmd, f) })
		Register(cmd)
	}
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { registerFlag(root, f) })
}

func registerFlag(cmd *cobra.Command, f *pflag.Flag) {
	if f.Value.Type() == "bool" {
		return
	}
	if complete := ofFlag(cmd, f); complete != nil {
		_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // fails only if it has one already, which then applies
	}
}

func ofArguments(cmd *cobra.Command) function {
	parent := ""
	if cmd.HasParent() {
		parent = cmd.Parent().Name()
	}
	switch {
	case cmd.Name() == "can-i":
		return verbAndKind
	case cmd.Name() == "logs":
		return pods
	case strings.Contains(cmd.Use, "KIND") || strings.Contains(cmd.Use, "TYPE"):
		return resources
	case strings.Contains(cmd.Use, "PATTERN") || parent == "accounts":
		return firstArgument(accounts)
	case strings.HasSuffix(cmd.Name(), "-context") || cmd.Name() == "get-contexts":
		return firstArgument(contextNames)
	}
	return cobra.NoFileCompletions
}

// ofFlag returns what completes the value of a flag; nil for files.
func ofFlag(cmd *cobra.Command, f *pflag.Flag) function {
	switch f.Name {
	case "account", "user-accounts", "all-accounts-against":
		return accounts
	case "namespace":
		return namespaces
	case "context":
		return contextNames
	case "kind":
		return kinds
	case "for":
		if cmd.Name() == "wait" {
			return fixed(cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace, "condition=", "create", "delete", "jsonpath=")
		}
		return objectsWithKind
	case "filename", "cacert", "cert", "key", "config", "kubeconfig":
		return nil
	}
	if strings.HasSuffix(f.Name, "-file") {
		return nil
	}
	return fixed(cobra.ShellCompDirectiveNoFileComp, valuesIn(f.Usage)...)
}

// listedValues are the values that the usage of a flag lists: "Output format: wide, json, yaml or name."
var listedValues = regexp.MustCompile(`^[^:]*: ((?:[\w-]+=?, )*[\w-]+=? or [\w-]+=?)`)

// valuesIn returns the values that the usage of a flag lists, so that each list exists once.
func valuesIn(usage string) []string {
	found := listedValues.FindStringSubmatch(usage)
	if found == nil {
		return nil
	}
	return strings.Split(strings.Replace(found[1], " or ", ", ", 1), ", ")
}

func fixed(directive cobra.ShellCompDirective, values ...string) function {
	return func(_ *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		matching := withPrefix(values, toComplete)
		if len(matching) == 1 && strings.HasSuffix(matching[0], "=") { // more follows
			return matching, directive | cobra.ShellCompDirectiveNoSpace
		}
		return matching, directive
	}
}

func withPrefix(values []string, prefix string) (matching []cobra.Completion) {
	for _, value := range values {
		if strings.HasPrefix(value, prefix) {
			matching = append(matching, value)
		}
	}
	return matching
}

func firstArgument(complete function) function {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, toComplete)
	}
}

// accounts completes the last of several accounts that are separated by commas.
func accounts(cmd *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return lastOfList(cmd, client.NamesOfAccounts, toComplete)
}

func kinds(cmd *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return lastOfList(cmd, client.NamesOfKinds, toComplete)
}

func namespaces(cmd *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return ask(cmd, client.NamesOfNamespaces, client.NameQuery{Account: flagValue(cmd, "account"), Prefix: toComplete}, "")
}

func lastOfList(cmd *cobra.Command, of client.NamesOf, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	before, prefix := "", toComplete
	if comma := strings.LastIndexByte(toComplete, ','); comma >= 0 {
		before, prefix = toComplete[:comma+1], toComplete[comma+1:]
	}
	q := client.NameQuery{Prefix: prefix}
	if of == client.NamesOfKinds {
		q.Account = flagValue(cmd, "account")
	}
	return ask(cmd, of, q, before)
}

// resources completes KIND NAME..., KIND/NAME... and ACCOUNT/KIND/NAMESPACE/NAME....
func resources(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch {
	case strings.Contains(toComplete, "/"):
		return objectsWithKind(cmd, args, toComplete)
	case len(args) == 0:
		return kinds(cmd, args, toComplete)
	case strings.Contains(args[0], "/"):
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, directive := ask(cmd, client.NamesOfObjects, objectQuery(cmd, args[0], toComplete), "")
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args[1:], name) }), directive
}

func objectQuery(cmd *cobra.Command, kind, prefix string) client.NameQuery {
	_ = connect.UseNamespace(cmd) // without a readable context, names of all namespaces are offered
	return client.NameQuery{Account: flagValue(cmd, "account"), Namespace: flagValue(cmd, "namespace"), Kind: kind, Prefix: prefix}
}

// objectsWithKind completes KIND/NAME and ACCOUNT/KIND/NAMESPACE/NAME.
func objectsWithKind(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	parts := strings.Split(toComplete, "/")
	last := parts[len(parts)-1]
	before := strings.TrimSuffix(toComplete, last)
	switch len(parts) {
	case 1:
		found, directive := kinds(cmd, args, toComplete)
		for i := range found {
			found[i] += "/"
		}
		return found, directive | cobra.ShellCompDirectiveNoSpace
	case 2:
		return ask(cmd, client.NamesOfObjects, objectQuery(cmd, parts[0], last), before)
	case 3:
		names, directive := ask(cmd, client.NamesOfNamespaces, client.NameQuery{Account: parts[0], Prefix: last}, before)
		for i := range names {
			names[i] += "/"
		}
		return names, directive | cobra.ShellCompDirectiveNoSpace
	case 4:
		q := client.NameQuery{Account: parts[0], Kind: parts[1], Namespace: parts[2], Prefix: last}
		if q.Namespace == "_" { // cluster-scoped
			q.Namespace = ""
		}
		return ask(cmd, client.NamesOfObjects, q, before)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// pods completes the arguments of logs: a pod, or KIND/NAME.
func pods(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch {
	case strings.Contains(toComplete, "/"):
		return objectsWithKind(cmd, args, toComplete)
	case len(args) > 0:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return ask(cmd, client.NamesOfObjects, objectQuery(cmd, "pods", toComplete), "")
}

// verbAndKind completes the arguments of auth can-i.
func verbAndKind(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		verbs := []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
		return withPrefix(verbs, toComplete), cobra.ShellCompDirectiveNoFileComp
	case 1:
		return resources(cmd, nil, toComplete)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// contextNames completes the contexts of the file of contexts, without a server.
func contextNames(_ *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	file, err := contexts.LoadFile()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, c := range file.Contexts {
		names = append(names, c.Name)
	}
	return offered(withPrefix(names, toComplete), ""), cobra.ShellCompDirectiveNoFileComp
}

func flagValue(cmd *cobra.Command, name string) string {
	f := cmd.Flags().Lookup(name)
	if f == nil {
		return ""
	}
	return f.Value.String()
}

// ask returns the names that the server knows, each after the text that is complete already.
func ask(cmd *cobra.Command, of client.NamesOf, q client.NameQuery, before string) ([]cobra.Completion, cobra.ShellCompDirective) {
	q.Limit = maxNames
	return inTime(cmd.Context(), func(ctx context.Context) []cobra.Completion {
		c, err := connect.Client(cmd)
		if err != nil {
			return nil
		}
		names, err := c.Names(ctx, of, q)
		if err != nil {
			return nil
		}
		return offered(withPrefix(names, q.Prefix), before)
	}), cobra.ShellCompDirectiveNoFileComp
}

// inTime returns what a function returns, or nothing if that takes too long. It does not wait for the function then: a
// program that prints a token may ignore that it is to end, and this program ends right after.
func inTime(ctx context.Context, complete func(context.Context) []cobra.Completion) []cobra.Completion {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found := make(chan []cobra.Completion, 1) // so that nobody waits for a reader that has left
	go func() { found <- complete(ctx) }()
	select {
	case names := <-found:
		return names
	case <-ctx.Done():
		return nil
	}
}

// offered leaves out names that a shell could take for something else: the names are those of others. A tab or a line feed
// would begin a description or another name, and a shell expands what a name with "$(" would say.
func offered(names []cobra.Completion, before string) (safe []cobra.Completion) {
	for _, name := range names {
		if len(safe) == maxNames {
			break
		}
		if textcheck.Sanitize(name) == name && !strings.ContainsAny(name, "\t\n\\$`\"'!&|;<>(){}* ") {
			safe = append(safe, before+name)
		}
	}
	return safe
}
