package clouddriver

import "net/http"

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
