#!/usr/bin/env bash
# Chooses settings on DEV scores only (one seed); the test sets are not read for it.
set -u
export PYTHONPATH=src WINGSPAN_ENCODERS=.gpu/encoders PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1
nvidia-cuda-mps-control -d || echo "no MPS: processes take turns on the GPU"
run() { timeout "${LIMIT:-280}" python3 benchmarks/bundling.py --data .gpu/data --dev-only --seeds 1 --output "$OUT/tuning.jsonl" "$@"; }
run --corpora genia,ncbi-disease --systems span --set train.epochs=6 --set 'head.hidden=[]|[256]' --workers 4 &
run --corpora genia,ncbi-disease --systems span --set train.epochs=6 --set spans.dropout=0.3 --workers 2 &
run --corpora genia --systems bl-span --set train.epochs=6 --workers 1 &
run --corpora ncbi-disease --systems span --set 'encoder.pooling=first|mean' --workers 2 &
run --corpora ncbi-disease --systems span --set train.epochs=20 --set 'train.learning_rate=5e-5|1e-4' --workers 2 &
run --corpora ncbi-disease --systems span --set 'head.hidden=[256]' --set spans.dropout=0.3 --workers 1 &
run --corpora ncbi-disease --systems bl-span --set 'head.hidden=[256]' --set spans.dropout=0.3 --workers 1 &
wait
echo quit | nvidia-cuda-mps-control
