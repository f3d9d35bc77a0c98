package controlplane

import "syscall"

// reusePort is SO_REUSEPORT, which package syscall lacks here.
const reusePort = 0xf

// attributes make a process die with the thread that starts it, and keep a
// terminal's Ctrl-C from it, so that the plane is stopped by its owner alone.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
