package clouddriver

import "net/http"

// Routes returns the patterns of all routes, with their methods.
func Routes() []string {
	var patterns []string
	for _, r := range (&api{Config: Config{Tasks: struct{ taskService }{}}}).router().routes {
		patterns = append(patterns, r.method()+" "+r.path())
	}
	return patterns
}

// OtherProviderAnswers returns the patterns of routes whose answers depend on nothing, with the
// status of each.
func OtherProviderAnswers() map[string]int {
	statuses := map[string]int{}
	for _, answer := range otherProviderAnswers {
		statuses[answer.pattern] = http.StatusOK
		if answer.body == "" {
			statuses[answer.pattern] = http.StatusNotFound
		}
	}
	return statuses
}
