#!/usr/bin/env bash
# What only a GPU can show, in one command of under ten minutes; `gpu_visit.py` says what. Nothing is downloaded.
#
#     benchmarks/gpu_visit.sh OUTPUT_FOLDER --encoder FOLDER [--corpus PATH] [--rehearse]
set -euo pipefail
cd "$(dirname "$0")/.."
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH} HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
exec "${PYTHON:-python3}" benchmarks/gpu_visit.py "$@"
