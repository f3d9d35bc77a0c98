package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/task"
)

// sentCaller is a callerRemote for another server. It has credentials: it is sent to servers of this installation only, and never stored.
type sentCaller struct {
	Provider string              `json:"provider"`
	Header   map[string][][]byte `json:"header"` // bytes, which need not be UTF-8
}

// Caller returns what Again needs at another server.
func (r *callerRemote) Caller() ([]byte, error) {
	sent := sentCaller{r.provider, map[string][][]byte{}}
	for name, values := range r.header {
		for _, value := range values {
			sent.Header[name] = append(sent.Header[name], []byte(value))
		}
	}
	return json.Marshal(sent)
}

// Again returns the service for a caller that another server has sent.
func (r *Remote) Again(caller []byte) (task.Remote, error) {
	var sent sentCaller
	if err := exactjson.Unmarshal(caller, &sent, exactjson.Limits{}); err != nil {
		return nil, fmt.Errorf("read who asks the upstream Clouddriver, from another server: %w", err)
	}
	header := http.Header{}
	for name, values := range sent.Header {
		for _, value := range values {
			header[name] = append(header[name], string(value))
		}
	}
	return &callerRemote{r, sent.Provider, header}, nil
}
