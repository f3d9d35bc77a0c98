package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/tasks"
	"github.com/vedette-io/vedette/server/task"
)

// fakeRemote executes the operations of all accounts whose names begin with "aws". Each of its tasks
// goes through the states.
type fakeRemote struct {
	calls      []string
	submitErr  error
	submitErrs int // how often it is the answer; 0 means always
	ownsErr    error
	states     []remoteState // of each poll; the last one stays
	polls      int
}

type remoteState struct {
	task.RemoteTask
	err error
}

func (f *fakeRemote) Owns(_ context.Context, r task.Request) (bool, error) {
	return strings.HasPrefix(string(r.Account()), "aws"), f.ownsErr
}

func (f *fakeRemote) Submit(_ context.Context, requests []task.Request, requestID string) (string, error) {
	var names []string
	for _, r := range requests {
		names = append(names, fmt.Sprintf("%s in %s", r.Name, r.Account()))
	}
	f.calls = append(f.calls, fmt.Sprintf("submit %s as %s", strings.Join(names, ", "), requestID))
	if f.submitErrs > 0 && len(f.calls) > f.submitErrs {
		return "remote-1", nil
	}
	return fmt.Sprintf("remote-%d", len(f.calls)), f.submitErr
}

func (f *fakeRemote) Get(_ context.Context, id string) (task.RemoteTask, error) {
	state := f.states[min(f.polls, len(f.states)-1)]
	f.polls++
	return state.RemoteTask, state.err
}

func line(status string) task.HistoryEntry { return task.HistoryEntry{Phase: "AWS", Status: status} }

// succeeds are the states of a remote task that succeeds.
func succeeds() []remoteState {
	return []remoteState{
		{RemoteTask: task.RemoteTask{History: []task.HistoryEntry{line("one")}}},
		{RemoteTask: task.RemoteTask{History: []task.HistoryEntry{line("one"), line("two")}}},
		{RemoteTask: task.RemoteTask{Completed: true, History: []task.HistoryEntry{line("one"), line("two"), line("three")},
			Results: []json.RawMessage{json.RawMessage(`{"serverGroupNames":["eu:web-v001"]}`)}}},
	}
}

func fails(results ...string) []remoteState {
	t := task.RemoteTask{Completed: true, Failed: true, Status: "no capacity", History: []task.HistoryEntry{line("no capacity")}}
	for _, r := range results {
		t.Results = append(t.Results, json.RawMessage(r))
	}
	return []remoteState{{RemoteTask: t}}
}

const (
	scaleOurs = `{"scaleManifest":{"account":"prod","manifestName":"deployment web","location":"shop","replicas":3}}`
	mixed     = `[` + scaleOurs + `,{"resize":{"account":"aws-1"}},{"tag":{"credentials":"aws-1"}},{"resize":{"account":"aws-2"}},` + scaleOurs + `]`
	oneOfEach = `[{"resize":{"account":"aws-1"}},` + scaleOurs + `]`
)

// submit starts a task with a remote service.
func (s *testServer) submit(t *testing.T, body string, remote task.Remote) string {
	t.Helper()
	requests, err := task.ParseRequests([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Submit(t.Context(), requests, task.Options{RequestID: "r", Remote: remote})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (s *testServer) get(t *testing.T, id string) task.Task {
	t.Helper()
	got, err := s.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// statuses returns the lines of a history that contain one of the texts.
func statuses(t task.Task, texts ...string) []string {
	var found []string
	for _, h := range t.History {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(h.Status, text) }) {
			found = append(found, h.Status)
		}
	}
	return found
}

// TestMixedTaskRunsInOrder checks that operations of both sides run in order, in one task.
func TestMixedTaskRunsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, remote := newServer(task.Config{}), &fakeRemote{states: succeeds()}
		id := s.submit(t, mixed, remote)
		time.Sleep(time.Minute)
		got := s.get(t, id)
		want := []string{"submit resize in aws-1, tag in aws-1 as r-1", "submit resize in aws-2 as r-2"}
		if got.State != tasks.Succeeded || !slices.Equal(remote.calls, want) || s.cluster.count() != 2 {
			t.Errorf("got %s after %q and %d operations in the cluster, want success after %q and 2", got.State, remote.calls, s.cluster.count(), want)
		}
		if want := []vedette.AccountName{"aws-1", "aws-2", "prod"}; !slices.Equal(got.Accounts, want) {
			t.Errorf("got the accounts %q, want %q", got.Accounts, want)
		}
		order := statuses(got, "Processing op", "Submitted", "one", "two", "three")
		if want := []string{"Processing op: KubernetesScaleManifestOperation",
			"Processing op: UpstreamOperations", "Submitted to the upstream Clouddriver as task remote-1", "one", "two", "three",
			"Processing op: UpstreamOperations", "Submitted to the upstream Clouddriver as task remote-2", "one", "two", "three",
			"Processing op: KubernetesScaleManifestOperation"}; !slices.Equal(order, want) {
			t.Errorf("got the history\n%q, want\n%q", order, want)
		}
		if n := len(got.Results); n != 2 || !strings.Contains(string(got.Results[0]), "web-v001") {
			t.Errorf("got the results %s, want those of the remote tasks", got.Results)
		}
	})
}

// TestRemoteFailuresEndTheTask checks how failures of the remote service end our task.
func TestRemoteFailuresEndTheTask(t *testing.T) {
	unavailable := vedette.Errorf(vedette.Unavailable, "it does not answer")
	down := slices.Repeat([]remoteState{{err: unavailable}}, 20)
	for _, tt := range []struct {
		name      string
		remote    fakeRemote
		state     tasks.State
		exception string // part of the only exception; empty if there is none
	}{
		{"its results say why", fakeRemote{states: fails(`{"type":"EXCEPTION","message":"no capacity in eu"}`)}, tasks.Failed, "no capacity in eu"},
		{"its results do not say why", fakeRemote{states: fails(`{}`)}, tasks.Failed, "Task remote-1 of the upstream Clouddriver failed: no capacity"},
		{"it rejects the operations", fakeRemote{submitErr: vedette.Errorf(vedette.Invalid, "400 bad region"), states: succeeds()}, tasks.Failed, "400 bad region"},
		{"its answer to the submission is lost", fakeRemote{submitErr: unavailable, submitErrs: 3, states: succeeds()}, tasks.Succeeded, ""},
		{"it never answers a submission", fakeRemote{submitErr: unavailable, states: succeeds()}, tasks.Failed,
			"submit [resize] of account aws-1 to the upstream Clouddriver: it may have accepted them, and they may run: it does not answer"},
		{"it does not answer for a minute", fakeRemote{states: append(down[:10:10], succeeds()...)}, tasks.Succeeded, ""},
		{"it does not answer any more", fakeRemote{states: append(succeeds()[:1:1], remoteState{err: unavailable})}, tasks.Failed,
			"the state of task remote-1 of the upstream Clouddriver is unknown, and it may still run: it does not answer"},
		{"it has never answered", fakeRemote{states: down}, tasks.Failed, "may still run"},
		{"its task does not end", fakeRemote{states: succeeds()[:1]}, tasks.Failed, "did not end within 2h0m0s. Task remote-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, remote := newServer(task.Config{}), tt.remote
				id := s.submit(t, oneOfEach, &remote)
				time.Sleep(3 * time.Hour)
				got := s.get(t, id)
				var exceptions []string
				for _, raw := range got.Results {
					if strings.Contains(string(raw), "EXCEPTION") {
						exceptions = append(exceptions, string(raw))
					}
				}
				if got.State != tt.state || s.cluster.count() != 1 {
					t.Errorf("got %s with %d operations in the cluster, want %s and 1, because the next operation runs", got.State, s.cluster.count(), tt.state)
				}
				if tt.exception == "" && exceptions != nil || tt.exception != "" && (len(exceptions) != 1 || !strings.Contains(exceptions[0], tt.exception)) {
					t.Errorf("got the exceptions %s, want one with %q", exceptions, tt.exception)
				}
			})
		})
	}
}

// TestRemoteDecisionFails checks that nothing starts if it is unknown who executes an operation.
func TestRemoteDecisionFails(t *testing.T) {
	s := newServer(task.Config{})
	requests, err := task.ParseRequests([]byte(mixed))
	if err != nil {
		t.Fatal(err)
	}
	reason := errors.New("the accounts cannot be read")
	remote := &fakeRemote{ownsErr: reason}
	if _, err := s.Submit(t.Context(), requests, task.Options{Remote: remote}); !errors.Is(err, reason) {
		t.Errorf("got %v, want %v", err, reason)
	}
	if len(remote.calls) > 0 || s.cluster.count() > 0 {
		t.Errorf("got %q and %d operations, want none", remote.calls, s.cluster.count())
	}
}

// TestStopWhileFollowing stops the server while it follows a remote task. The task that is left
// names the remote one.
func TestStopWhileFollowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, remote := newServer(task.Config{}), &fakeRemote{states: succeeds()[:1]}
		stop := s.startHousekeeping(t)
		id := s.submit(t, oneOfEach, remote)
		synctest.Wait()
		stop()
		got := s.get(t, id)
		if text := fmt.Sprintf("%s %+v", got.Results, got.History); got.State != tasks.Failed || !strings.Contains(text, "remote-1") || s.cluster.count() != 0 {
			t.Errorf("got %s and %d operations, want a failed task that names remote-1: %s", got.State, s.cluster.count(), text)
		}
	})
}

// TestRemoteSecretsAreNotStored checks results of a Clouddriver that does not remove the data of
// Secrets.
func TestRemoteSecretsAreNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newMemoryStore()
		s := newServer(task.Config{Store: memory})
		states := succeeds()
		states[2].Results = []json.RawMessage{json.RawMessage(`{"more":1.50,"manifests":[{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s"},"data":{"p":"aHVudGVyMg=="}},{"kind":"ConfigMap","data":{"k":"v"}}]}`),
			json.RawMessage(`{"manifests":"of another form"}`)}
		id := s.submit(t, oneOfEach, &fakeRemote{states: states})
		time.Sleep(time.Minute)
		got := fmt.Sprintf("%s", s.get(t, id).Results)
		if strings.Contains(got, "aHVudGVyMg") || !strings.Contains(got, `"k":"v"`) || !strings.Contains(got, "1.50") || !strings.Contains(got, "of another form") {
			t.Errorf("got %s, want everything but the data of the Secret", got)
		}
		for _, body := range memory.storedBodies {
			if strings.Contains(body, "aHVudGVyMg") {
				t.Errorf("the data of a Secret is stored: %s", body)
			}
		}
	})
}

// TestRepeatedSubmissionsHaveOneID checks that all submissions of one operation have the same ID, with which the
// remote service returns the same task.
func TestRepeatedSubmissionsHaveOneID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(task.Config{})
		remote := &fakeRemote{submitErr: vedette.Errorf(vedette.Unavailable, "the connection was reset"), submitErrs: 2, states: succeeds()}
		s.submit(t, oneOfEach, remote)
		time.Sleep(time.Minute)
		synctest.Wait() // for the task, which writes the calls
		if want := slices.Repeat([]string{"submit resize in aws-1 as r-0"}, 3); !slices.Equal(remote.calls, want) {
			t.Errorf("got %q, want %q", remote.calls, want)
		}
	})
}

// TestHugeRemoteTask checks a task that no database could store.
func TestHugeRemoteTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		huge := strings.Repeat("x", 5<<20)
		state := fails(`{"a":"`+huge+`"}`, `{"b":"small"}`)[0]
		state.Status, state.History = huge, slices.Repeat([]task.HistoryEntry{{Phase: huge, Status: huge}}, 3)
		memory := newMemoryStore()
		s := newServer(task.Config{Store: memory})
		id := s.submit(t, oneOfEach, &fakeRemote{states: []remoteState{state}})
		time.Sleep(time.Minute)
		got := s.get(t, id)
		if text := fmt.Sprintf("%s", got.Results); got.State != tasks.Failed || !strings.Contains(text, "small") || len(text) > 64<<10 {
			t.Errorf("got %s with %d bytes of results, want the small result and the failure", got.State, len(text))
		}
		if lines := statuses(got, "are left out"); len(lines) != 1 || !strings.HasPrefix(lines[0], "1 results") {
			t.Errorf("got the lines %q, want one about the result that is left out", lines)
		}
		for _, body := range memory.storedBodies {
			if len(body) > 256<<10 {
				t.Errorf("%d bytes are stored, want few", len(body))
			}
		}
	})
}
