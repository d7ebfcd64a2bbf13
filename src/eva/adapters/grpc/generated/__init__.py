"""What protoc makes of proto/; see `eva.adapters.grpc.regenerate`."""
