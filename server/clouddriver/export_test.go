package clouddriver

import "net/http"

// OtherProviderAnswers returns the patterns of routes whose answers depend on nothing, with the
// status of each.
func OtherProviderAnswers() map[string]int {
	statuses := map[string]int{}
	for _, answer := range otherProviderAnswers {
		statuses[string(answer.pattern)] = http.StatusOK
		if answer.body == "" {
			statuses[string(answer.pattern)] = http.StatusNotFound
		}
	}
	return statuses
}
