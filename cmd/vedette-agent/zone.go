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
type findController func(ctx context.Context, pod config.Pod) (kube.Workload, error)

// setZone sets the default of zoneId. It returns how many replicas the workload of the agent's pod has; 0 if that is unknown.
func setZone(ctx context.Context, cfg *config.Config, log *slog.Logger) (replicas int) {
	pod, ok := cfg.ZoneFromPod()
	if !ok {
		return 0
	}
	cfg.ZoneID, replicas = zoneOfPod(ctx, pod, cfg.ZoneID, findControllerInCluster, log)
	return replicas
}

// zoneOfPod returns the zone by the owners of the agent's pod, as the predecessor does, and the replicas. Without the
// right to read them, it returns byName, which comes from the name of the pod.
func zoneOfPod(ctx context.Context, pod config.Pod, byName string, find findController, log *slog.Logger) (zone string, replicas int) {
	ctx, cancel := context.WithTimeout(ctx, zoneTimeout)
	defer cancel()
	owner, err := find(ctx, pod)
	switch {
	case err != nil:
		log.Info("zoneId comes from the pod's name, because the pod's owners cannot be read", "zoneId", byName, "error", err)
		return byName, 0
	case owner.Name == "":
		return byName, 0
	}
	log.Debug("zoneId comes from the owner of the agent's pod", "zoneId", pod.Zone(owner.Name), "kind", owner.Kind)
	return pod.Zone(owner.Name), owner.Replicas
}

// findControllerInCluster asks the API server of the cluster in which the agent runs, with the
// service account of the agent's pod.
func findControllerInCluster(ctx context.Context, pod config.Pod) (kube.Workload, error) {
	cluster, err := connectOwnCluster()
	if err != nil {
		return kube.Workload{}, err
	}
	defer cluster.Close()
	return cluster.Controller(ctx, pod.Namespace, pod.Name)
}

// connectOwnCluster returns a client of the cluster in which the agent runs. The caller must close it.
func connectOwnCluster() (*kube.Cluster, error) {
	cluster, err := kube.Connect(kube.Access{InCluster: true, ServiceAccountDir: os.Getenv("VEDETTE_SERVICE_ACCOUNT_DIR")}, kube.Options{})
	if err != nil {
		return nil, fmt.Errorf("use the service account of the agent's pod: %w", err)
	}
	return cluster, nil
}
