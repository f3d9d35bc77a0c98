output "rest_address" {
  description = "Address of the server's REST API in its cluster; null without a server."
  value       = var.server == null ? null : "http://spin-clouddriver${var.server.mode == "none" ? "-vedette" : ""}.${var.namespace}:7002"
}

output "grpc_address" {
  description = "Address for agents of the same cluster; null without a server."
  value       = var.server == null ? null : "spin-clouddriver-grpc.${var.namespace}.svc:9091"
}
