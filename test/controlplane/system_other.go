//go:build unix && !linux

package controlplane

import "syscall"

const reusePort = syscall.SO_REUSEPORT

// attributes keep a terminal's Ctrl-C from a process. There is no death signal
// here: after kill -9 of the owner its processes stay.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
