locals {
  # What is not set is left out, so that the chart's defaults count. Both sides of a condition must have one type: they are texts.
  server = var.server == null ? jsonencode({ enabled = false }) : jsonencode({
    enabled     = true
    clouddriver = { mode = var.server.mode }
    database = merge(
      var.server.database_url == null ? {} : { url = var.server.database_url },
      var.server.database_secret == null ? {} : { passwordSecret = var.server.database_secret },
    )
    grpc = { type = var.server.grpc_type, hosts = var.server.grpc_hosts }
    tls = merge(
      { mode = var.server.tls_mode },
      var.server.tls_issuer == null ? {} : { issuer = { name = var.server.tls_issuer } },
      var.server.tls_secret == null ? {} : { secretName = var.server.tls_secret },
      var.server.tls_agent_secret == null ? {} : { agentSecretName = var.server.tls_agent_secret },
    )
  })
  agent = var.agent == null ? jsonencode({ enabled = false }) : jsonencode({
    enabled  = true
    replicas = var.agent.replicas
    account  = var.agent.account == null ? {} : { name = var.agent.account }
    server = merge(
      var.agent.server_address == null ? {} : { address = var.agent.server_address },
      var.agent.tls_secret == null ? {} : { tlsSecret = var.agent.tls_secret },
    )
    rbac        = { readOnly = var.agent.read_only, namespaces = var.agent.namespaces }
    kubeconfigs = { for account, secret in var.agent.kubeconfig_secrets : account => { secret = secret } }
  })
}

resource "helm_release" "vedette" {
  name             = var.name
  namespace        = var.namespace
  create_namespace = var.create_namespace
  chart            = var.chart
  version          = var.chart_version
  wait             = var.wait
  timeout          = var.timeout

  values = [
    yamlencode(merge(
      { server = jsondecode(local.server), agent = jsondecode(local.agent) },
      var.image_registry == null ? {} : { image = { registry = var.image_registry } },
    )),
    yamlencode(var.values),
  ]

  lifecycle {
    precondition {
      condition     = var.server != null || var.agent != null
      error_message = "Set server, agent or both: otherwise nothing is installed."
    }
    precondition {
      condition     = var.server != null || try(var.agent.server_address, null) != null
      error_message = "An agent without a server in this module needs agent.server_address."
    }
  }
}
