package kube

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// maskingTransport removes the credentials of a request from the body of an error. API servers do not
// quote them, but proxies and webhooks may, and errors are shown to everyone who reads accounts.
type maskingTransport struct{ next http.RoundTripper }

func (t maskingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err != nil || resp.StatusCode < http.StatusBadRequest {
		return resp, err
	}
	if credentials := credentialsOf(r); len(credentials) > 0 {
		resp.Body = &maskedBody{body: resp.Body, length: resp.ContentLength, credentials: credentials}
	}
	return resp, nil
}

// minCredentialBytes is the shortest text that is masked. A shorter one would mask words.
const minCredentialBytes = 4

// credentialsOf returns the token or the password of a request, in the forms in which JSON and text
// quote it.
func credentialsOf(r *http.Request) (forms [][]byte) {
	_, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	texts := []string{sent}
	if _, password, ok := r.BasicAuth(); ok {
		texts = append(texts, password)
	}
	for _, text := range texts {
		quoted, err := json.Marshal(text)
		if err != nil || len(text) < minCredentialBytes {
			continue
		}
		forms = append(forms, []byte(text), bytes.Trim(quoted, `"`), []byte(base64.StdEncoding.EncodeToString([]byte(text))))
	}
	return forms
}

const (
	maxMaskedBytes  = 4 << 20   // of an error with a known length
	maxChunkedBytes = 256 << 10 // of any other
)

// maskedBody is the body of an error. It is read as a whole into one buffer, which is zeroed at the end,
// because the body may quote a Secret.
type maskedBody struct {
	body        io.ReadCloser
	length      int64 // -1 if unknown
	credentials [][]byte

	buffer []byte // nil before the first Read
	rest   []byte // of buffer
	err    error  // at its end
}

// Read implements io.Reader.
func (b *maskedBody) Read(p []byte) (int, error) {
	if b.buffer == nil {
		b.fill()
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	if len(b.rest) == 0 {
		return n, b.err
	}
	return n, nil
}

func (b *maskedBody) fill() {
	size := b.length
	if size < 0 {
		size = maxChunkedBytes
	}
	b.buffer = make([]byte, min(size, maxMaskedBytes)+1)
	n, err := io.ReadFull(b.body, b.buffer)
	b.rest, b.err = b.buffer[:n], err
	if err == nil || err == io.ErrUnexpectedEOF {
		b.err = io.EOF // what follows is not needed
	}
	for _, credential := range b.credentials {
		maskAll(b.rest, credential)
	}
}

// maskAll overwrites a credential, whose length is not secret, in place.
func maskAll(text, credential []byte) {
	for {
		i := bytes.Index(text, credential)
		if i < 0 {
			return
		}
		for j := range credential {
			text[i+j] = '*'
		}
		text = text[i+len(credential):]
	}
}

// Close implements io.Closer.
func (b *maskedBody) Close() error {
	clear(b.buffer)
	return b.body.Close()
}
