#!/bin/bash
# Runs exported models in transformers 4.57 and 5.x, ONNX Runtime and llama.cpp, and compares them with Capstan; the openai client
# against the server; and Chromium, with its page and with reports (tests/interop). The packages come into virtual environments
# below build/; what cannot be installed is skipped.
set -uo pipefail
cd "$(dirname "$0")/.."
export HF_HUB_OFFLINE=1
status=0
cmake --build --preset release --target capstan run_numbers || exit 1
for version in "==4.57.*" ">=5"; do
  place=build/interop${version//[^0-9]/}
  [ -x "$place/bin/python" ] || python3 -m venv "$place" || { echo "skipped: no virtual environment"; exit 0; }
  if ! "$place/bin/pip" install -q torch "transformers$version" accelerate safetensors xxhash onnx onnxscript onnxruntime xllamacpp gguf; then
    echo "skipped: the packages for transformers$version cannot be installed"
    continue
  fi
  for script in module_fixtures transformers_types transformers_answers transformers_models transformers_edges transformers_writing transformers_tokenizers transformers_training transformers_linear onnx_runtime llama_cpp; do
    echo "-- $script, transformers$version"
    "$place/bin/python" "tests/interop/$script.py" || status=1
  done
done
for script in serve_client:openai serve_page:selenium report_pages:selenium; do
  if "$place/bin/pip" install -q "${script#*:}"; then
    echo "-- ${script%:*}"
    "$place/bin/python" "tests/interop/${script%:*}.py" || status=1
  else
    echo "skipped: the package ${script#*:} cannot be installed"
  fi
done
exit $status
