package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette/test/chaos/history"
)

// reader follows the changes of a namespace at one server, and begins anew whenever its stream ends, as the dashboard does.
type reader struct {
	address   string
	namespace string

	mu     sync.Mutex
	events []history.Event
}

// silence is after what time without an event a reader connects again: heartbeats come every ten seconds.
const silence = 25 * time.Second

func (r *reader) run(ctx context.Context) {
	for ctx.Err() == nil {
		r.follow(ctx)
		sleep(ctx, 200*time.Millisecond)
	}
}

// follow reads one stream until it ends.
func (r *reader) follow(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.address+"/vedette/v1/changes?initial=true&namespace="+r.namespace, nil)
	if err != nil {
		return
	}
	alive := time.AfterFunc(silence, cancel)
	defer alive.Stop()
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return
	}
	r.add(history.Event{Type: history.Restart})
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	event := ""
	for lines.Scan() {
		alive.Reset(silence)
		if name, found := strings.CutPrefix(lines.Text(), "event: "); found {
			event = name
		} else if data, found := strings.CutPrefix(lines.Text(), "data: "); found && !r.take(event, data) {
			return
		}
	}
}

// take records an event. It reports whether the stream goes on.
func (r *reader) take(event, data string) bool {
	var o struct{ Account, Name, UID, ResourceVersion string }
	var e history.Event
	switch event {
	case "added", "modified":
		if err := json.Unmarshal([]byte(data), &o); err != nil {
			panic(fmt.Sprintf("an event is not JSON: %v in %s", err, data))
		}
		version := history.UnknownVersion // of a cluster that was restored, until it is read again: the event that follows has the version
		if o.ResourceVersion != "" {
			var err error
			if version, err = strconv.ParseUint(o.ResourceVersion, 10, 64); err != nil {
				panic(fmt.Sprintf("an event has no version: %s", data))
			}
		}
		e = history.Event{Type: history.Present, Object: objectName(o.Account, o.Name), UID: o.UID, Version: version}
	case "deleted":
		if err := json.Unmarshal([]byte(data), &o); err != nil {
			panic(fmt.Sprintf("an event is not JSON: %v in %s", err, data))
		}
		e = history.Event{Type: history.Deleted, Object: objectName(o.Account, o.Name)}
	case "ready":
		e = history.Event{Type: history.Ready}
	case "lagged", "error":
		return false
	default:
		return true
	}
	r.add(e)
	return true
}

func (r *reader) add(e history.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// all returns the events so far.
func (r *reader) all() []history.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}
