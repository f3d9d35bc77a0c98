package main

import "syscall"

// attributes make a program die with the demo, in all cases, such as `make demo | head`, and protect it
// from a terminal's Ctrl-C, because the demo stops its programs in order.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
