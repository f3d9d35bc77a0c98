package watch

// Watches returns how many watches are open.
func (w *Watcher) Watches() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, f := range w.feeds {
		if f.isFollowing() {
			n++
		}
	}
	return n
}

// Snapshots returns how many snapshots are being read, and how many fast API servers may be read
// at a time. Slow ones are not in that limit.
func (l *Limiter) Snapshots() (running, limit int) {
	return l.queue.Load().Total, l.queue.Budget().Fast
}
