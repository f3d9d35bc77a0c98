package databases

import (
	"fmt"
	"os"
)

// standardError reports what fails after the last test has ended.
type standardError struct{}

func (standardError) Helper() {}

func (standardError) Error(args ...any) { fmt.Fprintln(os.Stderr, args...) }

func (standardError) Errorf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func (e standardError) Fatal(args ...any) { e.Error(args...); os.Exit(1) }
