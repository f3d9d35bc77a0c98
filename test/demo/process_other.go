//go:build unix && !linux

package main

import "syscall"

// attributes protect a program from a terminal's Ctrl-C, because the demo stops its programs in order.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
