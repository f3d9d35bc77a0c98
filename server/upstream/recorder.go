package upstream

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"slices"
)

// recorder is a response that is kept while it is not known whether it is needed. Responses with other statuses than those that
// are kept go to the client at once: agents' accounts must not depend on the upstream Clouddriver.
type recorder struct {
	client http.ResponseWriter
	keeps  []int // statuses
	body   io.Writer
	header http.Header
	status int
	short  []byte // the body, unless the status is 200
	isSent bool   // whether the client has got the response
	// isRight reports whether the response may be used, when its status is known. Nil means that it may.
	isRight   func() bool
	isDropped bool  // because it may not
	err       error // why the body could not be kept
}

func newRecorder(client http.ResponseWriter, body io.Writer, keeps ...int) *recorder {
	return &recorder{client: client, keeps: keeps, body: body, header: http.Header{}}
}

func (o *recorder) Header() http.Header { return o.header }

// WriteHeader implements http.ResponseWriter.
func (o *recorder) WriteHeader(status int) {
	if o.status != 0 {
		return
	}
	o.status = status
	if o.isDropped = o.isRight != nil && !o.isRight(); o.isDropped {
		return
	}
	if o.isSent = !slices.Contains(o.keeps, status); o.isSent {
		o.copyHeader()
	}
}

// maxShortBytes bounds the body of an error that is kept.
const maxShortBytes = 64 << 10

func (o *recorder) Write(p []byte) (int, error) {
	o.WriteHeader(http.StatusOK)
	switch {
	case o.isDropped:
		return len(p), nil
	case o.isSent:
		return o.client.Write(p)
	case o.status != http.StatusOK:
		o.short = append(o.short, p[:min(len(p), maxShortBytes-len(o.short))]...)
		return len(p), nil
	}
	n, err := o.body.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// finish ends the response, and returns why it could not be kept.
func (o *recorder) finish() error {
	o.WriteHeader(http.StatusOK)
	return o.err
}

// isMissing reports whether this server does not have what was asked for.
func (o *recorder) isMissing() bool { return o.status == http.StatusNotFound }

// copyHeader sends the header and the status.
func (o *recorder) copyHeader() {
	maps.Copy(o.client.Header(), o.header)
	o.client.WriteHeader(o.status)
}

// sendMissing sends a response whose status is not 200.
func (o *recorder) sendMissing() { o.send(bytes.NewReader(o.short)) }

// send sends the response with the body that was kept.
func (o *recorder) send(body io.WriterTo) {
	o.copyHeader()
	if o.status != http.StatusOK {
		body = bytes.NewReader(o.short)
	}
	_, _ = body.WriteTo(o.client) // the client may have disconnected
}
