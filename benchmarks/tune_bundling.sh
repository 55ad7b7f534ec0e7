#!/usr/bin/env bash
# Chooses learning rate, batch size and word shapes on DEV scores only (one seed); the test sets are not read for it.
set -u
export PYTHONPATH=src WINGSPAN_ENCODERS=.gpu/encoders PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1
run() { timeout "${LIMIT:-280}" python3 benchmarks/bundling.py --data .gpu/data --dev-only --seeds 1 --output "$OUT/tuning.jsonl" "$@"; }
nvidia-smi | head -15
run --corpora wnut17,ncbi-disease --systems span --set 'train.learning_rate=1e-4|2e-4' --set 'train.batch_size=16|32' --workers 16 &
run --corpora wnut17,ncbi-disease --systems span --set train.learning_rate=1e-4 --set train.batch_size=32 --set encoder.shapes=false --workers 2 &
run --corpora ncbi-disease --systems seq,bl-span --set train.learning_rate=2e-4 --set train.batch_size=32 --workers 2 &
run --corpora genia --systems span --set 'train.learning_rate=1e-4|2e-4' --set train.batch_size=32 --set train.epochs=5 --workers 2 &
wait
sort "$OUT/tuning.jsonl" | wc -l
