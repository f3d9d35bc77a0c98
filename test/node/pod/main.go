//go:build unix

// Pod is the only program of a container image for tests of nodes: it is the process that holds a Pod's namespaces, and it tries
// from inside a Pod what Pods can do.
//
//	pod                    waits for SIGTERM, and for processes without parents
//	pod get URL            prints status and body of an answer, or why there is none
//	pod dial HOST:PORT     prints "open", or why there is no connection
//	pod serve PORT TEXT    answers each request with a text
//	pod fill FILE          writes until the disk is full
//
// It ends with 1 if what it tries fails.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// patience is for how long it waits for an answer. A NetworkPolicy drops packets without a word.
const patience = 3 * time.Second

func main() {
	args := os.Args[1:]
	if len(args) == 0 {
		wait()
		return
	}
	if err := run(args[0], args[1:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func run(command string, args []string) error {
	switch {
	case command == "get" && len(args) == 1:
		return get(args[0])
	case command == "dial" && len(args) == 1:
		connection, err := net.DialTimeout("tcp", args[0], patience)
		if err != nil {
			return fmt.Errorf("no connection: %w", err)
		}
		fmt.Println("open")
		return connection.Close()
	case command == "serve" && len(args) == 2:
		server := &http.Server{Addr: ":" + args[0], ReadHeaderTimeout: patience,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, args[1]) })}
		return fmt.Errorf("serve: %w", server.ListenAndServe())
	case command == "fill" && len(args) == 1:
		return fill(args[0])
	default:
		return fmt.Errorf("unknown command %q with %d arguments", command, len(args))
	}
}

func get(url string) error {
	client := &http.Client{Timeout: patience}
	answer, err := client.Get(url)
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("half an answer: %w", err)
	}
	fmt.Printf("%d %s\n", answer.StatusCode, body)
	return nil
}

// fill keeps what it could write.
func fill(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("fill a disk: %w", err)
	}
	defer file.Close()
	block := make([]byte, 1<<16)
	for {
		if _, err := file.Write(block); errors.Is(err, syscall.ENOSPC) {
			if len(block) == 1 {
				return nil
			}
			block = block[:len(block)/2]
		} else if err != nil {
			return fmt.Errorf("fill a disk: %w", err)
		}
	}
}

// wait ends processes whose parents have ended, as the first process of a Pod that shares its processes must.
func wait() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}
