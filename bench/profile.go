package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// profile starts to profile the processor time of an agent, if the option profiles is set. The
// returned function waits for the end of that profile, takes those of the memory and of the
// goroutines, and writes them into the directory of the option.
func (b *bench) profile(ctx context.Context, agent *program, during time.Duration) func() error {
	if b.profiles == "" {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() {
		query := url.Values{"seconds": {strconv.Itoa(int(during / time.Second))}}
		done <- b.saveProfile(ctx, agent, "profile", query)
	}()
	return func() error {
		if err := <-done; err != nil {
			return err
		}
		for _, name := range []string{"allocs", "goroutine"} {
			if err := b.saveProfile(ctx, agent, name, nil); err != nil {
				return err
			}
		}
		return b.saveProfile(ctx, agent, "heap", url.Values{"gc": {"1"}}) // last, because a collection changes what is measured
	}
}

// saveProfile writes one profile of an agent into a file.
func (b *bench) saveProfile(ctx context.Context, agent *program, name string, query url.Values) error {
	u := url.URL{Scheme: "http", Host: agent.pprof, Path: "/debug/pprof/" + name, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("read the profile %s: %w", name, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("read the profile %s: %w", name, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("read the profile %s: %s: %.300s", name, resp.Status, text)
	}
	file := filepath.Join(b.profiles, fmt.Sprintf("%s-%s.pprof", filepath.Base(agent.log), name))
	logf("writing %s", file)
	return os.WriteFile(file, text, 0o600)
}
