package convergence

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// caller sends operations to the server, and keeps the outcomes that it received.
type caller struct {
	w       *world
	account string

	mu         sync.Mutex
	operations []*sentOperation
}

// sentOperation is one operation of a caller.
type sentOperation struct {
	id      string
	verb    string
	target  string // the name or number that it is about
	number  int
	uid     string // of the object to delete
	timeout time.Duration

	mu        sync.Mutex
	outcomes  []outcome // all that were received, which must be equal
	lastError string    // why no outcome was received; "" if one was
}

// outcome is the end of an operation, from a response or from the history.
type outcome struct {
	ID, State, Reason, Message string
	Status                     int
	Repeated                   bool
	Objects                    []struct {
		Metadata struct{ Name, Namespace, UID, ResourceVersion string }
	}
	Accepted, Ended time.Time
	Error           struct{ Kind, Message string }
}

func (o *sentOperation) String() string { return fmt.Sprintf("%s %s %s", o.verb, o.target, o.id) }

// outcome returns the first outcome that the caller received. Its state is "" if there is none.
func (o *sentOperation) outcome() outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.outcomes) == 0 {
		return outcome{}
	}
	return o.outcomes[0]
}

// newOperation returns an operation with the given timeout, for the target.
func (c *caller) newOperation(verb, target string, number int, timeout time.Duration) *sentOperation {
	o := &sentOperation{id: ulid.Make().String(), verb: verb, target: target, number: number, timeout: timeout}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.operations = append(c.operations, o)
	return o
}

// send sends an operation with the given body. If it gets no outcome, because the connection broke
// or because the API says that nothing was done, it sends it again with the same ID until the
// timeout.
func (c *caller) send(ctx context.Context, o *sentOperation, body object) outcome {
	fields := object{"account": c.account, "verb": o.verb, "timeout": o.timeout.String()}
	if o.verb != "discover" { // operations that change nothing have no ID
		fields["id"] = o.id
	}
	maps.Copy(fields, body)
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(err) // cannot happen: texts and numbers can be encoded
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout+time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		out, err := c.post(ctx, raw)
		o.mu.Lock()
		switch {
		case err != nil:
			o.lastError = err.Error()
		case out.State == "":
			o.lastError = out.Error.Message
		default:
			o.outcomes, o.lastError = append(o.outcomes, out), ""
		}
		answered := o.lastError == ""
		o.mu.Unlock()
		if answered {
			return out
		}
		sleep(ctx, 300*time.Millisecond)
	}
	return outcome{}
}

func (c *caller) post(ctx context.Context, body []byte) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second) // because the server may be frozen
	defer cancel()
	var out outcome
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.w.rest+"/vedette/v1/operations", bytes.NewReader(body))
	if err != nil {
		return out, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return out, err
	}
	defer response.Body.Close()
	return out, json.NewDecoder(response.Body).Decode(&out)
}

// history returns an operation's outcome from the server's history. Its state is "" if the
// operation was never accepted.
func (w *world) history(ctx context.Context, id string) (outcome, error) {
	var out outcome
	err := getJSON(ctx, w.rest+"/vedette/v1/operations/"+id, &out)
	if err == nil && out.State == "" && out.Error.Kind != "not_found" {
		err = fmt.Errorf("read the history of %s: %s", id, out.Error.Message)
	}
	return out, err
}
