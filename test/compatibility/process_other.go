//go:build !linux

package compatibility

import "syscall"

func diesWithParent() *syscall.SysProcAttr { return nil }
