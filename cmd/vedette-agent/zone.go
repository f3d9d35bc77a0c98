package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/agent/kube"
)

// zoneTimeout bounds the questions about the agent's pod, because the agent starts only after
// them.
const zoneTimeout = 10 * time.Second

// findController returns the workload that controls a pod.
type findController func(ctx context.Context, pod config.Pod) (kind, name string, err error)

// setZone sets the default of zoneId.
func setZone(ctx context.Context, cfg *config.Config, log *slog.Logger) {
	if pod, ok := cfg.ZoneFromPod(); ok {
		cfg.ZoneID = zoneOfPod(ctx, pod, cfg.ZoneID, findControllerInCluster, log)
	}
}

// zoneOfPod returns the zone by the owners of the agent's pod, as the predecessor does. Without the
// right to read them, it returns byName, which comes from the name of the pod.
func zoneOfPod(ctx context.Context, pod config.Pod, byName string, find findController, log *slog.Logger) string {
	ctx, cancel := context.WithTimeout(ctx, zoneTimeout)
	defer cancel()
	kind, name, err := find(ctx, pod)
	switch {
	case err != nil:
		log.Info("zoneId comes from the pod's name, because the pod's owners cannot be read", "zoneId", byName, "error", err)
		return byName
	case name == "":
		return byName
	}
	log.Debug("zoneId comes from the owner of the agent's pod", "zoneId", pod.Zone(name), "kind", kind)
	return pod.Zone(name)
}

// findControllerInCluster asks the API server of the cluster in which the agent runs, with the
// service account of the agent's pod.
func findControllerInCluster(ctx context.Context, pod config.Pod) (kind, name string, err error) {
	cluster, err := kube.Connect(kube.Access{InCluster: true, ServiceAccountDir: os.Getenv("VEDETTE_SERVICE_ACCOUNT_DIR")}, kube.Options{})
	if err != nil {
		return "", "", fmt.Errorf("use the service account of the agent's pod: %w", err)
	}
	defer cluster.Close()
	return cluster.Controller(ctx, pod.Namespace, pod.Name)
}
