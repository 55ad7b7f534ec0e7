#!/usr/bin/env bash
# Chooses settings on DEV scores only; the test sets are not read for it.
set -u
export PYTHONPATH=src WINGSPAN_ENCODERS=.gpu/encoders PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1
nvidia-cuda-mps-control -d || echo "no MPS: processes take turns on the GPU"
run() { timeout "${LIMIT:-230}" python3 benchmarks/bundling.py --data .gpu/data --dev-only --output "$OUT/tuning.jsonl" --systems span --set spans.dropout=0.3 --set head.dropout=0.3 "$@"; }
regularized() { # corpus, seeds, workers, then what all four have in common
    run --corpora "$1" --seeds "$2" --workers "$3" --set encoder.word_dropout=0.0 "${@:4}" &
    run --corpora "$1" --seeds "$2" --workers "$3" --set encoder.word_dropout=0.15 "${@:4}" &
    run --corpora "$1" --seeds "$2" --workers "$3" --set encoder.dropout=0.2 "${@:4}" &
    run --corpora "$1" --seeds "$2" --workers "$3" --set encoder.word_dropout=0.15 --set encoder.dropout=0.2 "${@:4}" &
}
regularized ncbi-disease 1,2 2 --set train.epochs=12
regularized genia 1 1 --set train.epochs=6
regularized wnut17 1 1 --set train.epochs=12
wait
echo quit | nvidia-cuda-mps-control
