package process

import "syscall"

// diesWithParent makes a program die with the process that started it, in all cases.
func diesWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
