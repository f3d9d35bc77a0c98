package beside

import (
	"encoding/json"
	"fmt"

	"github.com/vedette-io/vedette/test/beside/standin"
)

// Answers as readers need them.
type (
	accountView struct{ Name, Environment string }

	applicationView struct {
		Name         string
		ClusterNames map[string][]string
		Clusters     map[string][]struct{ Name string }
	}

	// objectView is a server group, a manager, a load balancer or a resource.
	objectView struct {
		Account, Name string
		Labels        map[string]string
	}

	manifestView struct {
		Account, Name string
		Manifest      struct {
			Kind     string
			Metadata struct {
				Name, Namespace string
				Labels          map[string]string
			}
		}
	}

	taskView struct {
		ID     string
		Status struct {
			Completed, Failed bool
			Status            string
		}
		History       []struct{ Phase, Status string }
		ResultObjects []json.RawMessage
	}
)

// ownerOf returns who answered, by the labels of an object.
func ownerOf(labels map[string]string) owner {
	if labels[standin.AnsweredBy] == standin.Name {
		return upstream
	}
	return agents
}

// checkFunc reads an answer, and returns what it tells and what is wrong with it.
type checkFunc func(body []byte) (entries []entry, problems []string)

// checkAs returns a check that decodes the answer.
func checkAs[T any](check func(T) ([]entry, []string)) checkFunc {
	return func(body []byte) ([]entry, []string) {
		var decoded T
		if err := json.Unmarshal(body, &decoded); err != nil {
			return nil, []string{"is not the JSON that it should be: " + err.Error()}
		}
		return check(decoded)
	}
}

// checkAccounts checks the list of accounts.
func checkAccounts(want []string) checkFunc {
	wanted := names{}
	for _, name := range want {
		wanted.add(name, "account")
	}
	return checkAs(func(list []accountView) (entries []entry, _ []string) {
		for _, a := range list {
			by := agents
			if a.Environment == standin.Name {
				by = upstream
			}
			entries = append(entries, entry{a.Name, "account", by, false})
		}
		return entries, checkEntries(entries, wanted, false)
	})
}

// checkApplications checks the list of applications. Other applications, such as that of the API server's Service, may
// be there.
func checkApplications(all map[string]*inventory, isExpanded bool) checkFunc {
	return checkAs(func(list []applicationView) ([]entry, []string) {
		var problems []string
		seen := map[string]int{}
		for _, a := range list {
			seen[a.Name]++
			if want := all[a.Name]; want != nil && isExpanded {
				problems = append(problems, checkEntries(clusterEntries(a.ClusterNames), want.clusters, false)...)
			}
		}
		for name := range all {
			if seen[name] != 1 && name != newcomer {
				problems = append(problems, fmt.Sprintf("application %s is there %s", name, times(seen[name])))
			}
		}
		return nil, problems
	})
}

func clusterEntries(byAccount map[string][]string) (entries []entry) {
	for account, clusters := range byAccount {
		for _, name := range clusters {
			entries = append(entries, entry{account: account, name: name})
		}
	}
	return entries
}

func checkApplication(want names) checkFunc {
	return checkAs(func(a applicationView) ([]entry, []string) {
		var entries []entry
		for account, clusters := range a.Clusters {
			for _, c := range clusters {
				entries = append(entries, entry{account: account, name: c.Name})
			}
		}
		return nil, checkEntries(entries, want, false)
	})
}

func checkClusters(want names) checkFunc {
	return checkAs(func(byAccount map[string][]string) ([]entry, []string) {
		return nil, checkEntries(clusterEntries(byAccount), want, false)
	})
}

// checkObjects checks a list of server groups, managers, load balancers or resources.
func checkObjects(want names, mayHaveMore bool) checkFunc {
	return checkAs(func(list []objectView) (entries []entry, _ []string) {
		for _, o := range list {
			entries = append(entries, entry{o.Account, o.Name, ownerOf(o.Labels), true})
		}
		return entries, checkEntries(entries, want, mayHaveMore)
	})
}

// checkNamed checks a list of objects of one account, which need not name it.
func checkNamed(account string, want []string) checkFunc {
	return checkAs(func(list []objectView) (entries []entry, _ []string) {
		for _, o := range list {
			entries = append(entries, entry{account: account, name: o.Name})
		}
		return nil, checkEntries(entries, names{account: want}, false)
	})
}

func checkSecurityGroups(want names) checkFunc {
	return checkAs(func(byAccount map[string]map[string]map[string][]struct{ Name string }) ([]entry, []string) {
		var entries []entry
		for account, byProvider := range byAccount {
			for _, byNamespace := range byProvider {
				for _, list := range byNamespace {
					for _, group := range list {
						entries = append(entries, entry{account: account, name: group.Name})
					}
				}
			}
		}
		return nil, checkEntries(entries, want, false)
	})
}

func checkManifest(account, name string) checkFunc {
	return checkAs(func(m manifestView) ([]entry, []string) {
		got := []entry{{m.Account, "deployment " + m.Manifest.Metadata.Name, ownerOf(m.Manifest.Metadata.Labels), true}}
		return got, checkEntries(got, names{account: {name}}, false)
	})
}

// checkTask checks a task that has succeeded before.
func checkTask(id string) checkFunc {
	return checkAs(func(t taskView) ([]entry, []string) {
		if t.ID != id || !t.Status.Completed || t.Status.Failed {
			return nil, []string{"is not the task as it ended"}
		}
		return nil, nil
	})
}
