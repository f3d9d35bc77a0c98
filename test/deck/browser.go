package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/vedette-io/vedette/test/process"
)

// browser is a Chromium without a window and with one page. It speaks the Chrome DevTools protocol
// over a pipe: JSON messages that end with a zero byte.
type browser struct {
	*process.Process
	send    io.WriteCloser
	session string      // of the page
	listen  func(event) // for events of the page

	mu      sync.Mutex
	last    int
	replies map[int]chan reply
}

type event struct {
	Method string
	Params json.RawMessage
}

type reply struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

// startBrowser starts a browser that keeps its data in a directory.
func startBrowser(ctx context.Context, program, dir string, listen func(event)) (*browser, error) {
	theirIn, send, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirIn.Close()
	receive, theirOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirOut.Close()
	args := []string{"--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + filepath.Join(dir, "chromium"),
		"--lang=en-US", "--no-first-run", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"}
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox") // Chromium refuses to run as root otherwise
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TZ=UTC")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // descriptors 3 and 4
	b := &browser{send: send, listen: listen, replies: map[int]chan reply{}}
	if b.Process, err = process.Start("chromium", cmd); err != nil {
		return nil, err
	}
	go b.receive(receive)
	if err := b.openPage(ctx); err != nil {
		b.Stop()
		return nil, err
	}
	return b, nil
}

func (b *browser) openPage(ctx context.Context) error {
	var target struct{ TargetID string }
	if err := b.call(ctx, "Target.createTarget", map[string]string{"url": "about:blank"}, &target); err != nil {
		return err
	}
	var attached struct{ SessionID string }
	if err := b.call(ctx, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached); err != nil {
		return err
	}
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Network", "Runtime", "Log"} {
		if err := b.call(ctx, domain+".enable", struct{}{}, nil); err != nil {
			return err
		}
	}
	size := map[string]any{"width": 1700, "height": 1250, "deviceScaleFactor": 1, "mobile": false}
	return b.call(ctx, "Emulation.setDeviceMetricsOverride", size, nil)
}

// call calls a method of the protocol.
func (b *browser) call(ctx context.Context, method string, params, result any) error {
	answer := make(chan reply, 1)
	if err := b.write(method, params, answer); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	case r, ok := <-answer:
		switch {
		case !ok:
			return fmt.Errorf("%s: the browser has ended:\n%s", method, b.Tail())
		case r.Error != nil:
			return fmt.Errorf("%s: %s", method, r.Error.Message)
		case result == nil:
			return nil
		}
		return json.Unmarshal(r.Result, result)
	}
}

func (b *browser) write(method string, params any, answer chan reply) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.replies == nil {
		return errors.New("the browser has ended")
	}
	b.last++
	b.replies[b.last] = answer
	message := map[string]any{"id": b.last, "method": method, "params": params}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = b.send.Write(append(text, 0))
	return err
}

// receive handles messages until the browser ends. It closes the channels of all calls then.
func (b *browser) receive(r io.ReadCloser) {
	defer r.Close()
	defer b.send.Close()
	for messages := bufio.NewReader(r); ; {
		text, err := messages.ReadBytes(0)
		if err != nil {
			break
		}
		var message struct {
			ID int
			event
			reply
		}
		if json.Unmarshal(text[:len(text)-1], &message) != nil {
			continue
		}
		if message.ID == 0 {
			b.listen(message.event)
		} else {
			b.answer(message.ID, message.reply)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, answer := range b.replies {
		close(answer)
	}
	b.replies = nil
}

func (b *browser) answer(id int, r reply) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if answer := b.replies[id]; answer != nil {
		delete(b.replies, id)
		answer <- r
	}
}
