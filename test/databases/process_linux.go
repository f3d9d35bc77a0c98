package databases

import "syscall"

// attributes make a server die with the test that started it, in all cases.
func attributes(account *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: account, Pdeathsig: syscall.SIGKILL}
}
