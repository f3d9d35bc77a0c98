package controlplane

import "syscall"

// reusePort is SO_REUSEPORT, which package syscall does not define here.
const reusePort = 0xf

// attributes make a process die with the thread that starts it, and protect it from a terminal's
// Ctrl-C, because only the plane's owner may stop it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
