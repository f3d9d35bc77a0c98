package standin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Fault answers a read in place of the stand-in, whose own answer it gets.
type Fault func(w http.ResponseWriter, r *http.Request, honest Answer)

// Delay answers late.
func Delay(d time.Duration) Fault {
	return func(w http.ResponseWriter, r *http.Request, honest Answer) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			honest.write(w)
		case <-r.Context().Done():
		}
	}
}

// CutOff closes the connection in the middle of the answer.
func CutOff(w http.ResponseWriter, _ *http.Request, honest Answer) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(honest.Body)))
	w.WriteHeader(honest.Status)
	_, _ = w.Write(honest.Body[:len(honest.Body)/2]) // the client may be gone
	_ = http.NewResponseController(w).Flush()        // so that the client gets this half
	panic(http.ErrAbortHandler)
}

// EndEarly ends the answer in the middle as if it were all.
func EndEarly(w http.ResponseWriter, _ *http.Request, honest Answer) {
	Answer{honest.Status, honest.Body[:len(honest.Body)/2]}.write(w)
}

// HTML answers as a proxy whose error page has status 200.
func HTML(w http.ResponseWriter, _ *http.Request, _ Answer) {
	w.Header().Set("Content-Type", "text/html")
	_, _ = w.Write([]byte("<html><body>Please sign in</body></html>")) // the client may be gone
}

// Redirect sends readers to a page that asks for a password.
func Redirect(w http.ResponseWriter, r *http.Request, _ Answer) {
	http.Redirect(w, r, "/login", http.StatusFound)
}

// Status answers with an error.
func Status(status int) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ Answer) { failure(status, "broken by a test").write(w) }
}

// Endless answers with a list that has no end.
func Endless(w http.ResponseWriter, r *http.Request, _ Answer) { repeat(w, r, -1) }

// Huge returns a fault that answers with a list of a size.
func Huge(size int) Fault {
	return func(w http.ResponseWriter, r *http.Request, _ Answer) { repeat(w, r, size) }
}

// repeat writes a list of different elements until it has a size; forever if that is negative.
func repeat(w http.ResponseWriter, r *http.Request, size int) {
	name := strings.Repeat("n", 1000)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte("["))
	for n, written := 0, 0; ; n++ {
		element := fmt.Appendf(nil, `{"account":"elsewhere","name":"%d%s"}`, n, name)
		if written += len(element); size >= 0 && written > size {
			_, _ = w.Write(append(element, ']'))
			return
		}
		if _, err := w.Write(append(element, ',')); err != nil || r.Context().Err() != nil {
			return
		}
	}
}

// Duplicates returns everything twice: elements of lists, and members of objects.
func Duplicates(w http.ResponseWriter, _ *http.Request, honest Answer) {
	body := bytes.TrimSpace(honest.Body)
	if honest.Status == http.StatusOK && len(body) > len("[]") {
		inner := body[1 : len(body)-1]
		honest.Body = slices.Concat(body[:1], inner, []byte(","), inner, body[len(body)-1:])
	}
	honest.write(w)
}

// AlsoAs returns a fault that claims everything of one account for another, too.
func AlsoAs(account, other string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, honest Answer) {
		var tree any
		if honest.Status == http.StatusOK && json.Unmarshal(honest.Body, &tree) == nil {
			honest = answerJSON(claim(tree, account, other))
		}
		honest.write(w)
	}
}

// claim adds what another account would have to lists and maps, and returns the whole.
func claim(tree any, account, other string) any {
	switch node := tree.(type) {
	case []any:
		all := []any{}
		for _, element := range node {
			object, _ := element.(map[string]any)
			if object["account"] == account || object["name"] == account {
				all = append(all, element, renamed(element, account, other))
				continue
			}
			all = append(all, claim(element, account, other))
		}
		return all
	case map[string]any:
		all := map[string]any{}
		for name, value := range node {
			all[name] = claim(value, account, other)
			if name == account {
				all[other] = value
			}
		}
		return all
	}
	return tree
}

// renamed returns a copy with another name in place of that of an account.
func renamed(tree any, account, other string) any {
	switch node := tree.(type) {
	case string:
		if node == account {
			return other
		}
	case []any:
		copied := []any{}
		for _, element := range node {
			copied = append(copied, renamed(element, account, other))
		}
		return copied
	case map[string]any:
		copied := map[string]any{}
		for name, value := range node {
			copied[name] = renamed(value, account, other)
		}
		return copied
	}
	return tree
}

// Flapping returns a fault that leaves out an account in every second answer.
func (s *Server) Flapping(account string) Fault {
	var count atomic.Int64
	return func(w http.ResponseWriter, r *http.Request, honest Answer) {
		if count.Add(1)%2 == 0 {
			honest.write(w)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		var without []Account
		for _, a := range s.state.snapshot().accounts {
			if a.Name != account {
				without = append(without, a)
			}
		}
		part := &Server{state: state{accounts: without, objects: s.state.snapshot().objects}}
		part.handler().ServeHTTP(w, r)
	}
}
