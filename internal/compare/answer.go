package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Answer is how a server answered a GET request.
type Answer struct {
	Path   string          `json:"path"` // with the query, percent-encoded as it was sent
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body"` // null if empty, a string if not JSON
}

// Responder answers requests: a server, or a recording of one.
type Responder interface {
	Answer(ctx context.Context, path string) (Answer, error)
}

// Recording is a responder that was recorded.
type Recording struct {
	Paths   []string // in the order of the file
	answers map[string]Answer
}

// ReadRecording reads a file with one answer per line.
func ReadRecording(r io.Reader) (*Recording, error) {
	rec := &Recording{answers: map[string]Answer{}}
	for d := json.NewDecoder(r); ; {
		var a Answer
		err := d.Decode(&a)
		if errors.Is(err, io.EOF) {
			break
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("answer %d: %w", len(rec.Paths)+1, err)
		case a.Path == "" || a.Status == 0:
			return nil, fmt.Errorf(`answer %d: got no path or status, want {"path": …, "status": …, "body": …}`, len(rec.Paths)+1)
		}
		if _, known := rec.answers[a.Path]; !known {
			rec.Paths = append(rec.Paths, a.Path)
		}
		rec.answers[a.Path] = a
	}
	if len(rec.Paths) == 0 {
		return nil, errors.New("the recording is empty")
	}
	return rec, nil
}

// Answer returns the recorded answer.
func (rec *Recording) Answer(_ context.Context, path string) (Answer, error) {
	a, known := rec.answers[path]
	if !known {
		return Answer{}, fmt.Errorf("GET %s was not recorded", path)
	}
	return a, nil
}

// Recorded returns the recorded answer to one of Paths.
func (rec *Recording) Recorded(path string) Answer { return rec.answers[path] }

// bodyOf returns a body in the form of Answer.Body.
func bodyOf(text []byte) json.RawMessage {
	if len(bytes.TrimSpace(text)) == 0 {
		return json.RawMessage("null")
	}
	if json.Valid(text) {
		return text
	}
	quoted, err := json.Marshal(string(text))
	if err != nil {
		panic(err) // cannot happen: strings always marshal
	}
	return quoted
}
