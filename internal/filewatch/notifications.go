package filewatch

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"
)

// notifications are those of the kernel about directories. Directories are watched and not files, because
// files are replaced, and the new one would not be watched. A nil *notifications sends none.
type notifications struct {
	log         *slog.Logger
	watcher     *fsnotify.Watcher
	directories map[string]bool // that are watched
	failed      bool            // logged
	out         chan struct{}   // holds a token after an event
	done        chan struct{}   // closed when forward has ended
}

// newNotifications returns nil if the kernel has no more of them.
func newNotifications(log *slog.Logger) *notifications {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		logPolling(log, err)
		return nil
	}
	n := &notifications{log: log, watcher: watcher, directories: map[string]bool{}, out: make(chan struct{}, 1), done: make(chan struct{})}
	go n.forward()
	return n
}

func logPolling(log *slog.Logger, err error) {
	log.Warn("the kernel cannot notify of changed files, so they are noticed some seconds later: raise fs.inotify.max_user_instances and max_user_watches",
		"error", err)
}

// forward turns events into tokens until close.
func (n *notifications) forward() {
	defer close(n.done)
	events, errs := n.watcher.Events, n.watcher.Errors
	for events != nil || errs != nil {
		var open bool
		select {
		case _, open = <-events:
			if !open {
				events = nil
			}
		case _, open = <-errs: // events were lost
			if !open {
				errs = nil
			}
		}
		if open {
			select {
			case n.out <- struct{}{}:
			default:
			}
		}
	}
}

// events returns a channel with a token after events. It is nil, which is never ready, if n is nil.
func (n *notifications) events() <-chan struct{} {
	if n == nil {
		return nil
	}
	return n.out
}

// watch watches the directories of files, and of the files that they link to, instead of those before.
// Directories that do not exist are left to the next call.
func (n *notifications) watch(files []string) {
	if n == nil {
		return
	}
	wanted := directoriesOf(files)
	for directory := range n.directories {
		if !wanted[directory] {
			_ = n.watcher.Remove(directory) // fails if it was deleted
			delete(n.directories, directory)
		}
	}
	watched := n.watcher.WatchList()
	for directory := range wanted {
		if slices.Contains(watched, directory) {
			continue
		}
		if err := n.watcher.Add(directory); err != nil {
			n.logFailure(directory, err)
			continue
		}
		n.directories[directory] = true
	}
}

// logFailure logs once why a directory cannot be watched, unless it does not exist or is closed to this user.
func (n *notifications) logFailure(directory string, err error) {
	if !n.failed && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		n.failed = true
		logPolling(n.log, fmt.Errorf("watch %s: %w", directory, err))
	}
}

func directoriesOf(files []string) map[string]bool {
	directories := map[string]bool{}
	for _, file := range files {
		directories[filepath.Dir(file)] = true
		if target, err := filepath.EvalSymlinks(file); err == nil {
			directories[filepath.Dir(target)] = true
		}
	}
	return directories
}

func (n *notifications) close() {
	if n == nil {
		return
	}
	_ = n.watcher.Close()
	<-n.done
}
