package filewatch

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// fileState is what a file contains.
type fileState struct {
	info   fs.FileInfo // nil if it cannot be read
	looked time.Time
	sum    [sha256.Size]byte // of the content; of the reason if it cannot be read
	target string            // the path without symbolic links; "" if it cannot be read
}

// modTimeResolution is how far apart two changes with the same modification time may be.
const modTimeResolution = 2 * time.Second

// maxFileBytes bounds what is read of a file. No configuration is larger.
const maxFileBytes = 16 << 20

// stateOf returns the state of a file. It does not read a file again that looks like before.
func stateOf(path string, before fileState) fileState {
	state := fileState{looked: time.Now()}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		state.sum = sha256.Sum256([]byte(err.Error()))
		return state
	case !info.Mode().IsRegular(): // reading a pipe would take what is meant for others
		state.sum = sha256.Sum256([]byte("it is not a regular file"))
		return state
	case before.looksLike(info):
		state.info = info
		state.sum = before.sum
		state.target = before.target
		return state
	}
	content, err := readStart(path)
	if err != nil {
		state.sum = sha256.Sum256([]byte(err.Error()))
		return state
	}
	state.info, state.sum = info, sha256.Sum256(content)
	state.target, _ = filepath.EvalSymlinks(path) // fails if the file was removed just now
	return state
}

// looksLike reports whether a file is the one that was read. It returns false if the file was
// changed just before, because it may have been changed again without a new modification time.
func (s fileState) looksLike(info fs.FileInfo) bool {
	return s.info != nil && os.SameFile(s.info, info) && s.info.Size() == info.Size() && s.info.ModTime().Equal(info.ModTime()) &&
		changedAt(s.info) == changedAt(info) && s.looked.Sub(info.ModTime()) > modTimeResolution
}

func readStart(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the file: %w", err)
	}
	defer file.Close()
	var content bytes.Buffer
	if _, err := io.Copy(&content, io.LimitReader(file, maxFileBytes)); err != nil {
		return nil, fmt.Errorf("read the file: %w", err)
	}
	return content.Bytes(), nil
}

// fileStates holds the states of files by path.
type fileStates map[string]fileState

// take returns the states of files, and which have changed since s. Files that s does not have
// count as changed.
func (s fileStates) take(paths []string) (now fileStates, changed []string) {
	now = fileStates{}
	for _, path := range paths {
		before, known := s[path]
		now[path] = stateOf(path, before)
		if !known || now[path].sum != before.sum {
			changed = append(changed, path)
		}
	}
	return now, changed
}

// isCurrent reports whether files have the states of s, which has all of them.
func (s fileStates) isCurrent(paths []string) bool {
	for _, path := range paths {
		before, known := s[path]
		if !known || stateOf(path, before).sum != before.sum {
			return false
		}
	}
	return true
}
