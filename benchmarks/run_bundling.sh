#!/usr/bin/env bash
# The results of paper 002 on one GPU: four systems, four corpora, the given seeds, sixteen trainings side by side.
set -u
export PYTHONPATH=src WINGSPAN_ENCODERS=.gpu/encoders PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1
nvidia-cuda-mps-control -d || echo "no MPS: processes take turns on the GPU"
python3 benchmarks/bundling.py --data .gpu/data --corpora "$1" --seeds "$2" --workers 16 \
    --commit "$3" --output "${OUT:-benchmarks/results}/bundling.jsonl"
echo quit | nvidia-cuda-mps-control
