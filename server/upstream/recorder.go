package upstream

import (
	"net/http"
	"slices"
)

// recorder keeps this server's answer if the upstream Clouddriver's may be needed too. An answer with
// another status, or for which there is no memory, goes to the client at once: agents' accounts must
// not depend on the upstream Clouddriver.
type recorder struct {
	*capture
	client http.ResponseWriter
	memory *allowance
	keeps  []int // statuses
	sent   bool  // whether the client has got the answer
}

// WriteHeader implements http.ResponseWriter.
func (o *recorder) WriteHeader(status int) {
	if o.status != 0 {
		return
	}
	o.status = status
	if !slices.Contains(o.keeps, status) {
		o.send()
	}
}

func (o *recorder) Write(p []byte) (int, error) {
	o.WriteHeader(http.StatusOK)
	if !o.sent && !o.memory.take(len(p)) {
		o.header.Set(incompleteHeader, incompleteFor(reasonTooLarge))
		o.send()
	}
	if o.sent {
		return o.client.Write(p)
	}
	o.body = append(o.body, p...)
	return len(p), nil
}

// send passes on what was kept, and everything from now on.
func (o *recorder) send() {
	o.copyTo(o.client)
	o.sent, o.body = true, nil
	o.memory.release()
}
