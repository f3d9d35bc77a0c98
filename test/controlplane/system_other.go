//go:build unix && !linux

package controlplane

import "syscall"

const reusePort = syscall.SO_REUSEPORT

// attributes protect a process from a terminal's Ctrl-C. There is no death signal on this system,
// so processes outlive an owner that is killed by kill -9.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
