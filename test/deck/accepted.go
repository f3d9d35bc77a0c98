package main

// acceptedDifferences are texts that not all states show.
var acceptedDifferences = []*accepted{
	{
		page:   "kubernetes-autoscaler",
		text:   "No recent events found|Failed(ComputeMetricsReplicas|GetResourceMetric)|Occurrence: AGE|failed to get cpu",
		reason: "Clouddriver asks for events of the kind Horizontalpodautoscaler, which do not exist; the kind is HorizontalPodAutoscaler",
	},
}

// knownErrors are errors of the console that Deck itself causes, whoever answers.
var knownErrors = []*accepted{
	{page: ".*", text: "/favicon.ico$", reason: "not every build of Deck has an icon, and the browser asks for one"},
}
