#!/bin/sh
# Generate the worker protocol's Python messages: proto/generate.sh [OUTPUT, src if not given].
# The virtual path makes the generated module import itself under the package that it lives in.
set -eu
repository=$(cd "$(dirname "$0")/.." && pwd)
output=${1:-$repository/src}
package=eva/adapters/grpc/generated
mkdir -p "$output/$package"
cd "$repository"
exec "${PYTHON:-$repository/.venv/bin/python}" -m grpc_tools.protoc \
  --proto_path="$package=proto/eva/worker/v1" \
  --python_out="$output" --pyi_out="$output" \
  "$package/worker.proto"
