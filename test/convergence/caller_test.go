package convergence

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// caller sends operations to the server, and keeps what it was told of each.
type caller struct {
	w       *world
	account string

	mu     sync.Mutex
	orders []*order
}

// order is one operation of a caller.
type order struct {
	id      string
	verb    string
	what    string // that it is about: a name, a number
	number  int
	uid     string // of what is deleted
	timeout time.Duration

	mu   sync.Mutex
	told []outcome // every one that came, of which all must be the same
	last string    // why no outcome came; empty where one did
}

// outcome is the end of an operation as the API tells it: answered, or in the
// history.
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

func (o *order) String() string { return fmt.Sprintf("%s %s %s", o.verb, o.what, o.id) }

// outcome is what the caller was told first; without a state where it was told
// nothing.
func (o *order) outcome() outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.told) == 0 {
		return outcome{}
	}
	return o.told[0]
}

// order makes an operation; body is what the API takes beside what all have.
func (c *caller) order(verb, what string, number int, timeout time.Duration) *order {
	o := &order{id: ulid.Make().String(), verb: verb, what: what, number: number, timeout: timeout}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orders = append(c.orders, o)
	return o
}

// send has an operation carried out. Where no outcome comes, because the connection
// broke, or because the API says that nothing was done, it asks again under the same
// id, which the API allows, until it gives up.
func (c *caller) send(ctx context.Context, o *order, body object) outcome {
	all := object{"account": c.account, "verb": o.verb, "timeout": o.timeout.String()}
	if o.verb != "discover" { // what changes nothing takes none
		all["id"] = o.id
	}
	for name, value := range body {
		all[name] = value
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err) // texts and numbers can be encoded
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout+30*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		out, err := c.post(ctx, raw)
		o.mu.Lock()
		switch {
		case err != nil:
			o.last = err.Error()
		case out.State == "":
			o.last = out.Error.Message
		default:
			o.told, o.last = append(o.told, out), ""
		}
		told := o.last == ""
		o.mu.Unlock()
		if told {
			return out
		}
		idle(ctx, 300*time.Millisecond)
	}
	return outcome{}
}

func (c *caller) post(ctx context.Context, body []byte) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second) // the server may be frozen
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

// history is what the server tells of an operation afterwards; without a state
// where it was never accepted.
func (w *world) history(ctx context.Context, id string) (outcome, error) {
	var out outcome
	err := getJSON(ctx, w.rest+"/vedette/v1/operations/"+id, &out)
	if err == nil && out.State == "" && out.Error.Kind != "not_found" {
		err = fmt.Errorf("the history of %s: %s", id, out.Error.Message)
	}
	return out, err
}
