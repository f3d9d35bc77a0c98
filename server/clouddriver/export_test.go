package clouddriver

// Routes returns the patterns of all routes, with their methods.
func Routes() []string {
	var patterns []string
	for _, r := range (&api{Config: Config{Tasks: struct{ taskService }{}}}).router().routes {
		patterns = append(patterns, r.method()+" "+r.path())
	}
	return patterns
}
