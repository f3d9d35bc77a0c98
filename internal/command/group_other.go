//go:build !unix

package command

import "os/exec"

// killGroup does nothing, because this operating system has no process groups.
func killGroup(*exec.Cmd) {}
