package beside

import (
	"fmt"
	"slices"
	"strings"
)

// names are the names of objects by account.
type names map[string][]string

// inventory is what Spinnaker must see of one application.
type inventory struct {
	clusters, serverGroups, managers, loadBalancers names
}

// inventoryOf returns what Spinnaker must see of each application of the clusters.
func inventoryOf(clusters map[string]*cluster) map[string]*inventory {
	byApplication := map[string]*inventory{}
	for account, c := range clusters {
		for _, o := range c.objects {
			if o.Application() == "" {
				continue
			}
			app := byApplication[o.Application()]
			if app == nil {
				app = &inventory{names{}, names{}, names{}, names{}}
				byApplication[o.Application()] = app
			}
			switch o.Kind {
			case "ReplicaSet":
				app.serverGroups.add(account, o.FullName())
				app.clusters.add(account, o.Cluster())
			case "Deployment":
				app.managers.add(account, o.FullName())
			case "Service":
				app.loadBalancers.add(account, o.FullName())
			}
		}
	}
	return byApplication
}

func (n names) add(account, name string) { n[account] = append(n[account], name) }

// together returns the union of several names.
func together(all ...names) names {
	union := names{}
	for _, n := range all {
		for account, list := range n {
			union[account] = append(union[account], list...)
		}
	}
	return union
}

// entry is one object in an answer.
type entry struct {
	account, name string
	owner         owner // who has answered; unknown if the answer does not tell
	byLabel       bool  // a label tells the owner
}

// checkEntries returns what is wrong with entries: what is missing, there twice, or not wanted.
func checkEntries(got []entry, want names, mayHaveMore bool) (problems []string) {
	count := map[[2]string]int{}
	for _, e := range got {
		count[[2]string{e.account, e.name}]++
	}
	for account, list := range want {
		for _, name := range list {
			if n := count[[2]string{account, name}]; n != 1 {
				problems = append(problems, fmt.Sprintf("%s of account %s is there %s", name, account, times(n)))
			}
			delete(count, [2]string{account, name})
		}
	}
	for key, n := range count {
		if n > 1 || !mayHaveMore {
			problems = append(problems, fmt.Sprintf("%s of account %s is there %s, and is not in the cluster", key[1], key[0], times(n)))
		}
	}
	slices.Sort(problems)
	return problems
}

func times(n int) string {
	switch n {
	case 0:
		return "not at all"
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprint(n, " times")
}

// withoutNames replaces what differs between applications, so that violations of one kind are counted together.
func withoutNames(problem string) string {
	words := strings.Fields(problem)
	for i, word := range words {
		if strings.HasPrefix(word, "app") && strings.ContainsAny(word, "0123456789") {
			words[i] = "NAME"
		}
	}
	return strings.Join(words, " ")
}
