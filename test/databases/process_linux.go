package databases

import "syscall"

// attributes let a server die with the test that started it, however that ends.
func attributes(account *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: account, Pdeathsig: syscall.SIGKILL}
}
