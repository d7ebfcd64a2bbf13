"""What protoc makes of `proto/`, by `proto/generate.sh`. Not edited by hand."""
