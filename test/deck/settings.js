// Deck's settings: Kubernetes only, without sign-in, Gate at /gate of the same origin.
window.process = window.process || {env: {}};
window.spinnakerSettings = {
  gateUrl: '/gate', authEnabled: false, authEndpoint: '/gate/auth/user', bakeryDetailUrl: '',
  providers: {kubernetes: {}}, defaultProviders: ['kubernetes'], defaultTimeZone: 'UTC', defaultInstancePort: 80,
  pollSchedule: 30000, onDemandClusterThreshold: 350, checkForUpdates: false, debugEnabled: true,
  maxPipelineAgeDays: 14, maxRunningExecutionsToRetrieve: 100, maxFetchHistoryOnEvaluateVariables: 100,
  kubernetesAdHocInfraWritesEnabled: true, searchVersion: 1, useClassicFirewallLabels: false,
  analytics: {}, banners: [], canary: {featureDisabled: true, stagesEnabled: false}, disabledImages: [], entityTags: {maxResults: 5000},
  gitSources: [], hiddenStages: [], managedDelivery: {defaultManifest: 'spinnaker.yml', manifestBasePath: '.spinnaker'},
  newApplicationDefaults: {chaosMonkey: false}, notifications: {}, pagerDuty: {required: false}, plugins: [], pubsubProviders: [],
  slack: {baseUrl: ''}, stashTriggerInfo: '', triggerTypes: ['cron', 'docker', 'pipeline', 'webhook'],
  feature: {
    artifacts: true, kubernetesRawResources: true, pipelines: true, versionedProviders: true, manualJudgmentParentPipeline: true,
    canary: false, chaosMonkey: false, ci: false, displayTimestampsInUserLocalTime: false, dryRunEnabled: false, entityTags: false,
    fiatEnabled: false, functions: false, helmApiVersions: false, html5Routing: false, managedDelivery: false, managedResources: false,
    managedServiceAccounts: false, notifications: false, pagerDuty: false, pipelineTemplates: false, quietPeriod: false, roscoMode: false,
    slack: false, snapshots: false,
  },
};
