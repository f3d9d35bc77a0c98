package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/accountlist"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/task"
	"github.com/vedette-io/vedette/server/upstream/masking"
	"github.com/vedette-io/vedette/server/upstream/merging"
)

// Remote is the connection to the upstream Clouddriver.
type Remote struct {
	client   *client
	answers  *answers
	accounts *accountCache
}

// NewRemote returns a connection. The error is vedette.Invalid if the configuration is invalid.
// Nothing is sent before Run or the first request.
func NewRemote(cfg Config, accounts *accountlist.Cache, s answerStore) (*Remote, error) {
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	a := newAnswers(c, s)
	return &Remote{c, a, &accountCache{accounts: accounts, index: a.index, missing: c.Missing,
		readIndex: func(ctx context.Context) { a.latest(ctx, accountDetails) }}}, nil
}

// Run keeps what is known about the accounts and applications of the upstream Clouddriver up to date until ctx ends.
func (r *Remote) Run(ctx context.Context) error { return r.answers.run(ctx) }

// For returns the service that executes the operations of other accounts for the sender of a
// request. If the provider is empty, the operations name theirs.
func (r *Remote) For(request *http.Request, provider string) task.Remote {
	header := authorize.CallerOf(request).Header.Clone()
	if credentials := request.Header.Get("Authorization"); credentials != "" {
		header.Set("Authorization", credentials)
	}
	return &callerRemote{r, provider, header}
}

// callerRemote sends the operations of one caller. It outlives the caller's request.
type callerRemote struct {
	*Remote
	provider string
	header   http.Header // the caller's X-SPINNAKER headers and credentials
}

// Owns implements task.Remote. An account that the upstream Clouddriver does not have is not its own, so that a list with operations of
// both sides is rejected before anything of it runs.
func (r *callerRemote) Owns(ctx context.Context, request task.Request) (bool, error) {
	isForeign, err := isForeign(ctx, r.accounts, request, r.provider)
	account := string(request.Account())
	if err != nil || !isForeign || account == "" || r.answers.index.hasAccount(account) == yes {
		return isForeign, err
	}
	path := &url.URL{Path: "/credentials/" + account, RawPath: "/credentials/" + url.PathEscape(account)}
	if err := checkPath(path); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.client.MergeTimeout)
	defer cancel()
	p := r.client.open(ctx, r.header, path)
	defer p.close()
	if p.reason != "" && p.rejection == nil {
		return false, unavailable(p.reason)
	}
	// Who is rejected learns why when the operation is submitted.
	return p.document != nil || p.rejection != nil && p.rejection.status != http.StatusNotFound, nil
}

// Submit implements task.Remote. The operations are of one account.
func (r *callerRemote) Submit(ctx context.Context, requests []task.Request, requestID string) (string, error) {
	for _, o := range requests {
		r.answers.index.mention(o.Applications()...)
	}
	operations := []map[string]json.RawMessage{}
	for _, o := range requests {
		operations = append(operations, map[string]json.RawMessage{o.Name: o.Description})
	}
	body, err := json.Marshal(operations)
	if err != nil {
		return "", fmt.Errorf("encode operations: %w", err)
	}
	path := &url.URL{Path: "/ops", RawQuery: url.Values{"clientRequestId": {requestID}}.Encode()}
	if r.provider != "" {
		path.Path, path.RawPath = "/"+r.provider+"/ops", "/"+url.PathEscape(r.provider)+"/ops"
	}
	if err := checkPath(path); err != nil {
		return "", err
	}
	var ref struct {
		ID string `json:"id"`
	}
	if err := r.exchange(ctx, http.MethodPost, path, body, &ref); err != nil {
		return "", err
	}
	if !isTaskID(ref.ID) {
		return "", vedette.Errorf(vedette.Unavailable, "the upstream Clouddriver accepted the operations, and they may run, "+
			"but it named no task that can be followed: %.100q", ref.ID)
	}
	return ref.ID, nil
}

// maxTaskIDBytes is more than any Clouddriver's IDs have.
const maxTaskIDBytes = 200

// isTaskID reports whether a text can be the ID in the path of a task.
func isTaskID(id string) bool {
	return id != "" && id != "." && id != ".." && len(id) <= maxTaskIDBytes && !strings.ContainsFunc(id, func(r rune) bool {
		return r == '/' || r == '\\' || r == ';' || unicode.IsControl(r)
	})
}

// remoteTaskView is a task as Clouddriver shows it.
type remoteTaskView struct {
	Status struct {
		Status    string `json:"status"`
		Completed bool   `json:"completed"`
		Failed    bool   `json:"failed"`
	} `json:"status"`
	History       []task.HistoryEntry `json:"history"`
	ResultObjects []json.RawMessage   `json:"resultObjects"`
}

// Get implements task.Remote.
func (r *callerRemote) Get(ctx context.Context, id string) (task.RemoteTask, error) {
	var view remoteTaskView
	path := &url.URL{Path: "/task/" + id, RawPath: "/task/" + url.PathEscape(id)}
	err := checkPath(path)
	if err == nil {
		err = r.exchange(ctx, http.MethodGet, path, nil, &view)
	}
	return task.RemoteTask{Completed: view.Status.Completed, Failed: view.Status.Failed, Status: view.Status.Status, History: view.History,
		Results: view.ResultObjects}, err
}

// exchangeTimeout bounds one request. The upstream Clouddriver validates operations before it
// answers.
const exchangeTimeout = time.Minute

// taskMemory is the caller for whom all tasks together hold memory, and taskBytes what each exchange takes at least. If there
// is none in time, a task polls again.
const (
	taskMemory = "tasks"
	taskBytes  = 16 << 10
)

// exchange sends a request with a JSON body, and decodes the answer.
func (r *callerRemote) exchange(ctx context.Context, method string, path *url.URL, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, r.client.BaseURL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.URL = r.client.url(path, path.RawQuery)
	request.Header = r.header.Clone()
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	r.client.complete(ctx, request.Header)
	response, err := r.client.transport.RoundTrip(request)
	if err != nil {
		return unavailable(reasonOf(err))
	}
	defer response.Body.Close()
	grant, err := r.client.memory.Acquire(ctx, taskMemory, taskBytes)
	if err != nil {
		return unavailable(reasonBusy)
	}
	defer grant.Release()
	raw, err := readDocument(ctx, response.Body, grant)
	switch {
	case err != nil:
		return unavailable(r.client.reasonOfError(ctx, err))
	case response.StatusCode != http.StatusOK:
		return statusError(response.StatusCode, r.added().Mask(raw))
	case bytes.Count(raw, []byte(",")) > merging.MaxElements: // lists of small values take much more memory than bytes
		return unavailable(reasonTooLarge)
	case exactjson.Unmarshal(r.added().InTasks().Mask(raw), into, exactjson.Limits{Bytes: exactjson.Unlimited}) != nil:
		return unavailable(reasonInvalid)
	}
	return nil
}

// added returns the credentials of this server and of the caller, because other users can read a task, too.
func (r *callerRemote) added() masking.Credentials {
	return r.client.transport.added.With(r.header.Get("Authorization"))
}

// maxMessage bounds what is repeated of an error, and maxErrorBytes what is decoded.
const (
	maxMessage    = 2000
	maxErrorBytes = 64 << 10
)

// statusError returns the error for an answer that is not a success, in the upstream Clouddriver's
// words.
func statusError(status int, body []byte) error {
	var e struct {
		Message string   `json:"message"`
		Errors  []string `json:"errors"`
	}
	if len(body) <= maxErrorBytes {
		_ = exactjson.Unmarshal(body, &e, exactjson.Limits{}) // whatever it is, the status counts
	}
	message := e.Message
	if len(e.Errors) > 0 {
		message = fmt.Sprintf("%s: %q", message, e.Errors)
	}
	kind := vedette.Unavailable
	switch {
	case status == http.StatusForbidden:
		kind = vedette.Denied
	case status >= 400 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout:
		kind = vedette.Invalid
	}
	return vedette.Errorf(kind, "the upstream Clouddriver answered %d %s %.*s", status, http.StatusText(status), maxMessage, message)
}
