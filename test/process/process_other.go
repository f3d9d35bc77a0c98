//go:build !linux

package process

import "syscall"

func diesWithParent() *syscall.SysProcAttr { return nil }
