package assignment

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/golden"
)

// TestScriptsRunAsRecorded runs events from testdata. Each line in the first column of a script is an event, and the indented lines below
// are the effects that follow from it, and what has become of the accounts.
func TestScriptsRunAsRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			script, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := newScript(t)
			for line := range strings.Lines(string(script)) {
				s.runLine(strings.TrimSuffix(line, "\n"))
			}
			golden.Compare(t, file, s.out.String())
		})
	}
}

// script runs events against a fleet, and a store in memory.
type script struct {
	*simulation
	t   *testing.T
	out strings.Builder
}

func newScript(t *testing.T) *script {
	t.Helper()
	return &script{simulation: newSimulation(Config{Balance: &BalanceConfig{}}), t: t}
}

func (s *script) runLine(line string) {
	if strings.HasPrefix(line, " ") {
		return // of the last run
	}
	fmt.Fprintln(&s.out, line)
	if line == "" || strings.HasPrefix(line, "#") {
		return
	}
	words := strings.Fields(line)
	before := s.describe()
	if err := s.command(words[0], words[1:]); err != nil {
		s.t.Errorf("%s: %v after\n%s", line, err, s.out.String())
	}
	for _, e := range s.happened {
		fmt.Fprintln(&s.out, "    "+formatEffect(e))
	}
	s.happened = nil
	if after := s.describe(); after != before {
		fmt.Fprintln(&s.out, "    = "+after)
	}
}

func (s *script) command(name string, args []string) error {
	options := map[string]string{}
	args = slices.DeleteFunc(args, func(arg string) bool {
		key, value, ok := strings.Cut(arg, "=")
		if ok {
			options[key] = value
		}
		return ok
	})
	args = append(args, "", "")
	agent, account := args[0], vedette.AccountName(args[1])
	switch name {
	case "join":
		s.join(agent, options["zone"])
	case "leave":
		s.step(Left{Member: s.agents[agent], Request: s.newRequest()})
	case "register":
		s.step(Registered{Member: s.agents[agent], Request: s.newRequest(), Account: newAccount(account, options["cluster"], options["read"])})
	case "deregister":
		s.step(Deregistered{Member: s.agents[agent], Account: account, Request: s.newRequest()})
	case "revoke":
		_, term := s.fleet.Cacher(account)
		s.step(Revoked{Member: s.agents[agent], Account: account, Term: term, Reason: vedette.Errorf(vedette.Invalid, "the store rejects it")})
	case "error":
		s.step(ErrorReported{Member: s.agents[agent], Account: account, IsSet: args[2] != "off"})
	case "transfer", "remove":
		change := Removal
		if name == "transfer" {
			change = Transfer
		}
		s.step(ChangeWanted{Account: vedette.AccountName(args[0]), Change: change, Request: s.newRequest()})
	case "alive":
		s.step(AliveAnnounced{Member: s.agents[agent], Interval: MinAliveInterval})
	case "freeze":
		s.frozen[s.agents[agent]] = true
	case "wake":
		delete(s.frozen, s.agents[agent])
	case "objects":
		var n int64
		if _, err := fmt.Sscan(args[1], &n); err != nil {
			return err
		}
		s.sizes[vedette.AccountName(args[0])] = n
	case "ok", "fail", "lost", "refuse":
		return s.answer(vedette.AccountName(args[0]), answer(name))
	case "late":
		s.step(s.lastAnswer)
	case "wait":
		d, err := time.ParseDuration(args[0])
		if err != nil {
			return err
		}
		s.wait(d)
	default:
		return fmt.Errorf("no such command")
	}
	return nil
}

// describe says what has become of the accounts.
func (s *script) describe() string {
	var all []string
	for _, a := range s.fleet.sortedAccounts() {
		text := fmt.Sprintf("%s %s", a.name, a.currentPhase())
		if a.cacher != 0 {
			text += fmt.Sprintf(" by %s in term %d", s.nameOf(a.cacher), a.term)
		}
		var standbys []string
		for _, m := range a.candidates {
			if m.id != a.cacher {
				standbys = append(standbys, s.nameOf(m.id))
			}
		}
		if len(standbys) > 0 {
			text += ", candidates " + strings.Join(standbys, " ")
		}
		if a.unreleased {
			text += ", to be released"
		}
		all = append(all, text)
	}
	return cmp.Or(strings.Join(all, "; "), "no accounts")
}

func formatEffect(e Effect) string {
	switch e := e.(type) {
	case Admit:
		return fmt.Sprintf("admit %s", e.Account.Name)
	case Acquire:
		text := fmt.Sprintf("acquire %s for %s", e.Account.Name, e.Agent)
		if e.KeepNamespaces {
			text += ", keep namespaces"
		}
		if e.KeepPermissions {
			text += ", keep permissions"
		}
		return text
	case Release:
		return fmt.Sprintf("release %s of terms %v", e.Account, e.Terms)
	case KeepFreshness:
		return fmt.Sprintf("keep the freshness of %s in term %d", e.Account, e.Term)
	case Send:
		text := fmt.Sprintf("send to member %d: %s of %s", e.Member, e.Assignment.Role, e.Assignment.Account)
		if e.Assignment.Term != 0 {
			text += fmt.Sprintf(" in term %d", e.Assignment.Term)
		}
		if e.Assignment.Notice != "" {
			text += ", for operators: " + e.Assignment.Notice
		}
		return text
	case NotifyAssigned:
		return fmt.Sprintf("notify: %s is assigned", e.Account)
	case Reply:
		text := fmt.Sprintf("reply to %d", e.Request)
		if len(e.Agents) > 0 {
			text += fmt.Sprintf(", agents %v", e.Agents)
		}
		if e.Err != nil {
			text += ": " + e.Err.Error()
		}
		return text
	case MakeChange:
		return fmt.Sprintf("change %s", e.Account.Name)
	case SharedChanged:
		return fmt.Sprintf("member %d has accounts that others have: %v", e.Member, e.IsShared)
	case CountObjects:
		return "count objects"
	case Examine:
		return fmt.Sprintf("examine %s", e.Account)
	case Log:
		return strings.TrimSuffix(fmt.Sprintln(append([]any{"log", e.Level, e.Message}, e.Args...)...), "\n")
	}
	return fmt.Sprintf("%#v", e)
}
