// Package filewatch notices that files have changed, and says so once for each change.
//
// A change is a change of content. Files that are rewritten with the same content, or whose mode
// changes, have not changed. The kernel's notifications (fsnotify) only say when to look: whatever
// they miss, such as files on network file systems, in directories that did not exist, or behind
// symbolic links into other directories, is found by looking every few seconds.
//
// Programs write files in steps, and Kubernetes replaces the files of a ConfigMap or Secret by
// replacing one symbolic link. So what is written in place is reported once it has looked the same for a
// moment, and what is replaced as a whole at once. See stabilityCheck.
//
// The first report names each file as soon as its state is known, because it may have changed since the caller read it. Callers that
// read files when they are reported miss no change; callers that have read them before compare. Callers could pass the state
// from before they read a file instead, but one that takes it too late would miss a change without an error. An unnecessary report
// costs one comparison.
package filewatch
