package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/vedette-io/vedette/server/task"
)

// sentCaller is a callerRemote for another server. It has credentials: it is sent to servers of this installation only, and never stored.
type sentCaller struct {
	Provider string      `json:"provider"`
	Header   http.Header `json:"header"`
}

// Caller returns what Again needs at another server.
func (r *callerRemote) Caller() ([]byte, error) {
	return json.Marshal(sentCaller{r.provider, r.header})
}

// Again returns the service for a caller that another server has sent.
func (r *Remote) Again(caller []byte) (task.Remote, error) {
	var sent sentCaller
	if err := json.Unmarshal(caller, &sent); err != nil {
		return nil, fmt.Errorf("read who asks the upstream Clouddriver, from another server: %w", err)
	}
	return &callerRemote{r, sent.Provider, sent.Header}, nil
}
