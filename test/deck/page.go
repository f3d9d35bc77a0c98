package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	elementTimeout = 30 * time.Second       // until an element can be clicked
	settleTimeout  = time.Minute            // until a page no longer changes
	quietTime      = 700 * time.Millisecond // after which a page is done
	pollTime       = 60 * time.Millisecond
)

// page is the browser's page. Methods without a result do nothing after one of them has failed; err
// is the reason.
type page struct {
	*browser
	ctx  context.Context
	deck string // URL
	err  error

	mu       sync.Mutex
	pending  map[string]request
	requests []request // of Gate, since the last take
	errors   []string  // of the console, since the last take
}

// request is a request of the page to Gate.
type request struct {
	Method string
	Path   string // with the query
	Status int    // 0 if there was no answer
	Failed string // the reason
}

func (r request) isFailed() bool { return r.Failed != "" || r.Status >= 400 }

func (r request) String() string {
	return fmt.Sprintf("%s %s: %d %s", r.Method, r.Path, r.Status, r.Failed)
}

// gatePath is the path of Deck's origin below which Gate is.
const gatePath = "/gate"

// listen records requests and errors.
func (p *page) listen(e event) {
	var params struct {
		RequestID string
		Request   struct{ Method, URL string }
		Response  struct{ Status int }
		ErrorText string
		Canceled  bool
		Type      string
		Args      []struct {
			Value       any
			Description string
		}
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
		Entry struct{ Level, Text, URL string }
	}
	if json.Unmarshal(e.Params, &params) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r, isPending := p.pending[params.RequestID]
	switch e.Method {
	case "Network.requestWillBeSent":
		p.pending[params.RequestID] = request{Method: params.Request.Method, Path: strings.TrimPrefix(params.Request.URL, p.deck)}
	case "Network.responseReceived":
		if isPending {
			r.Status = params.Response.Status
			p.pending[params.RequestID] = r
		}
	case "Network.loadingFinished", "Network.loadingFailed":
		delete(p.pending, params.RequestID)
		r.Failed = params.ErrorText
		if isPending && !params.Canceled && strings.HasPrefix(r.Path, gatePath) { // a page that is left cancels requests
			p.requests = append(p.requests, r)
		}
	case "Runtime.exceptionThrown":
		p.errors = append(p.errors, params.ExceptionDetails.Text+" "+params.ExceptionDetails.Exception.Description)
	case "Runtime.consoleAPICalled":
		if params.Type == "error" {
			var words []string
			for _, a := range params.Args {
				words = append(words, strings.TrimPrefix(fmt.Sprint(a.Value), "<nil>")+a.Description)
			}
			p.errors = append(p.errors, strings.Join(words, " "))
		}
	case "Log.entryAdded":
		if params.Entry.Level == "error" {
			p.errors = append(p.errors, params.Entry.Text+" "+strings.TrimPrefix(params.Entry.URL, p.deck))
		}
	}
}

// take returns what was recorded since the last call.
func (p *page) take() (requests []request, errs []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	requests, errs = p.requests, p.errors
	p.requests, p.errors = nil, nil
	return requests, errs
}

// open loads Deck anew, and shows one of its paths.
func (p *page) open(path string) {
	p.navigate("about:blank")
	p.forgetPending() // nothing tells how requests of the page before ended
	p.navigate(p.deck + "/#" + path)
	p.settle()
}

func (p *page) navigate(url string) {
	if p.err == nil {
		p.err = p.call(p.ctx, "Page.navigate", map[string]string{"url": url}, nil)
	}
}

func (p *page) forgetPending() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.pending)
}

// evaluate runs a function in JavaScript, and decodes its result.
func (p *page) evaluate(function string, result any, args ...any) error {
	encoded, err := json.Marshal(append([]any{}, args...))
	if err != nil {
		return err
	}
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	params := map[string]any{"expression": fmt.Sprintf("(%s)(...%s)", function, encoded), "returnByValue": true, "awaitPromise": true}
	if err := p.call(p.ctx, "Runtime.evaluate", params, &answer); err != nil {
		return err
	}
	if answer.ExceptionDetails != nil {
		return errors.New(answer.ExceptionDetails.Exception.Description)
	}
	if result == nil || answer.Result.Value == nil {
		return nil
	}
	return json.Unmarshal(answer.Result.Value, result)
}

var errNotYet = errors.New("it has not happened")

// poll calls a function until it reports true.
func (p *page) poll(what string, timeout time.Duration, done func() (bool, error)) {
	if p.err != nil {
		return
	}
	deadline := time.Now().Add(timeout)
	for {
		isDone, err := done()
		if isDone {
			return
		}
		if p.ctx.Err() != nil || time.Now().After(deadline) {
			p.err = fmt.Errorf("wait for %s: not within %v: %w", what, timeout, cmp.Or(errors.Join(err, p.ctx.Err()), errNotYet))
			return
		}
		time.Sleep(pollTime)
	}
}

// settle waits until no request is under way, and what is shown stays the same for a while.
func (p *page) settle() {
	last, since := "", time.Now()
	p.poll("the page to be done", settleTimeout, func() (bool, error) {
		var now string
		err := p.evaluate(`() => location.href + document.querySelectorAll('*').length + document.body.innerText`, &now)
		if err != nil || now != last || p.isLoading() || len(now) < 200 {
			last, since = now, time.Now()
		}
		return time.Since(since) > quietTime, err
	})
}

func (p *page) isLoading() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pending) > 0
}

// findElement finds the first visible element by a selector of CSS and a text that it contains; elements with
// exactly this text come first.
const findElement = `const find = (selector, text) => {
	const shown = [...document.querySelectorAll(selector)].filter((e) => e.getClientRects().length > 0 && e.textContent.includes(text));
	return shown.find((e) => e.textContent.trim() === text) || shown[0];
};`

// click clicks an element when it can be clicked: it stands still, and nothing covers it.
func (p *page) click(selector, text string) {
	type point struct{ X, Y float64 }
	var last, at *point
	p.poll(fmt.Sprintf("a %s %q that can be clicked", selector, text), elementTimeout, func() (bool, error) {
		last, at = at, nil
		err := p.evaluate(`(selector, text) => { `+findElement+`
			const e = find(selector, text);
			if (!e || e.disabled) return null;
			e.scrollIntoViewIfNeeded();
			const box = e.getClientRects()[0], x = box.x + Math.min(box.width / 2, 60), y = box.y + box.height / 2;
			const hit = document.elementFromPoint(x, y);
			return e.contains(hit) || hit?.contains(e) ? {x, y} : null;
		}`, &at, selector, text)
		return err == nil && at != nil && last != nil && *at == *last, err
	})
	for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
		if p.err == nil {
			p.err = p.call(p.ctx, "Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil)
		}
	}
}

// await waits until an element is shown.
func (p *page) await(selector, text string) {
	p.poll(fmt.Sprintf("a %s %q", selector, text), elementTimeout, func() (isShown bool, err error) {
		err = p.evaluate(`(selector, text) => { `+findElement+` return !!find(selector, text); }`, &isShown, selector, text)
		return isShown, err
	})
}

// fill replaces the value of an input field by typing.
func (p *page) fill(selector, value string) {
	p.await(selector, "")
	if p.err == nil {
		p.err = p.evaluate(`(selector) => { `+findElement+` const e = find(selector, ''); e.focus(); e.select(); }`, nil, selector)
	}
	if p.err == nil {
		p.err = p.call(p.ctx, "Input.insertText", map[string]string{"text": value}, nil)
	}
}

// choose chooses an option by its text.
func (p *page) choose(selector, text string) {
	p.await(selector, "")
	if p.err == nil {
		p.err = p.evaluate(`(selector, text) => { `+findElement+`
			const list = find(selector, '');
			list.value = [...list.options].find((o) => o.textContent.trim() === text).value;
			list.dispatchEvent(new Event('change', {bubbles: true}));
		}`, nil, selector, text)
	}
}

// edit replaces texts in the YAML editor; "" replaces everything.
func (p *page) edit(oldNew ...string) {
	p.await(".ace_editor", "")
	p.settle()
	if p.err != nil {
		return
	}
	p.err = p.evaluate(`(pairs) => {
		const editor = document.querySelector('.ace_editor').env.editor;
		let text = editor.getValue();
		for (let i = 0; i < pairs.length; i += 2) {
			if (!text.includes(pairs[i])) throw new Error('not in the editor: ' + pairs[i] + ' in ' + text);
			text = pairs[i] ? text.replaceAll(pairs[i], pairs[i + 1]) : pairs[i + 1];
		}
		editor.setValue(text, -1);
	}`, nil, oldNew)
	p.settle()
}

// text returns the text that is shown. An editor shows only some lines of its text, so it follows as a
// whole.
func (p *page) text() (text string) {
	err := p.evaluate(`() => [document.body.innerText, ...[...document.querySelectorAll('.ace_editor')].map((e) => e.env.editor.getValue())].join('\n')`,
		&text)
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(text, "\u200b", "")
}

// screenshot writes what is shown to a PNG file.
func (p *page) screenshot(file string) error {
	var picture struct{ Data string }
	if err := p.call(p.ctx, "Page.captureScreenshot", map[string]string{"format": "png"}, &picture); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(picture.Data)
	if err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o600)
}
