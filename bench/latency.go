package main

import "context"

func latency(context.Context, *bench) error    { return nil }
func wireBytes(context.Context, *bench) error  { return nil }
func storeRates(context.Context, *bench) error { return nil }
func resume(context.Context, *bench) error     { return nil }
