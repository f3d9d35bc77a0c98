package replay

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Check is one recorded request, and what came of it.
type Check struct {
	Request   string // method and path, and the operation
	Want, Got string
	Skipped   string // why it was not sent; "" if it was
	Accepted  string // why another answer is better; "" if it is not
}

// IsOK reports whether the answer is as recorded, or better, or was not asked for.
func (c Check) IsOK() bool { return c.Skipped != "" || c.Accepted != "" || c.Want == c.Got }

// Print writes the checks that failed, why others were accepted or left out, and a summary. It reports
// whether none failed.
func Print(w io.Writer, part string, checks []Check) bool {
	var accepted, skipped, failed int
	told := map[string]bool{}
	for _, c := range checks {
		reason := ""
		switch {
		case c.Skipped != "":
			skipped++
			reason = "left out, for example " + c.Request + ": " + c.Skipped
		case c.Accepted != "":
			accepted++
			reason = "accepted, for example " + c.Request + ": " + c.Accepted
		case !c.IsOK():
			failed++
			fmt.Fprintf(w, "%s: %s\n    recorded: %s\n    got:      %s\n", part, c.Request, c.Want, c.Got)
		}
		if key := c.Skipped + c.Accepted; key != "" && !told[key] {
			told[key] = true
			fmt.Fprintf(w, "%s: %s\n", part, reason)
		}
	}
	fmt.Fprintf(w, "%s: %d requests: %d as recorded, %d accepted, %d different, %d left out\n", part, len(checks),
		len(checks)-accepted-skipped-failed, accepted, failed, skipped)
	return failed == 0
}

// session sends requests to one server.
type session struct {
	url    string
	client http.Client
}

func newSession(url string) *session {
	return &session{url: url, client: http.Client{Timeout: time.Minute}}
}

// response is an answer, whose body is short in all recordings.
type response struct {
	status int
	body   []byte
}

const maxResponseBytes = 16 << 20

func (s *session) send(ctx context.Context, method, path, user, body string) (response, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return response{}, err
	}
	if user != "" {
		request.Header.Set("X-SPINNAKER-USER", user)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	r, err := s.client.Do(request)
	if err != nil {
		return response{}, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, maxResponseBytes))
	return response{r.StatusCode, text}, err
}

// isEmpty reports whether a body is an empty list or object, or nothing.
func isEmpty(body []byte) bool {
	switch string(bytes.TrimSpace(body)) {
	case "", "[]", "{}", "null":
		return true
	}
	return false
}

// readLines calls handle with each line of a file, which may be long.
func readLines(r io.Reader, handle func(line string) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxResponseBytes)
	for number := 1; lines.Scan(); number++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if err := handle(lines.Text()); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	return lines.Err()
}
