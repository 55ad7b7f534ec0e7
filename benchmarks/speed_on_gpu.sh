#!/bin/bash
# Prediction and training on one GPU, everything that docs/results.md has of it, in under five minutes:
#
#   benchmarks/speed_on_gpu.sh FOLDER BEFORE OUTPUT [COMMIT]
#
# FOLDER has encoders/all-MiniLM-L6-v2, encoders/all-mpnet-base-v2 and data/genia/{train,dev,test}.jsonl.gz; BEFORE is the
# source folder of an older version (git archive edee730 src); OUTPUT gets throughput-gpu.jsonl and training_speed.jsonl.
# What matters most comes first, and each row is written when it is there. For a rehearsal without a GPU:
#
#   SENTENCES=60 TRAIN=64 DEV=8 ROUNDS=1 DEVICE=cpu benchmarks/speed_on_gpu.sh FOLDER BEFORE OUTPUT
set -eu
folder=$1 before=$2 output=$3 commit=${4:-unknown}
mkdir -p "$output"
export PYTHONPATH=${PYTHONPATH:-$(dirname "$0")/../src}

predict() { # ENCODER SYSTEMS
    "${PYTHON:-python3}" "$(dirname "$0")/throughput.py" --data "$folder/data" --encoder-folder "$folder/encoders/$1" \
        --corpora genia --sentences "${SENTENCES:-15000}" --systems "$2" --types bfloat16 --rounds "${ROUNDS:-3}" \
        --end-to-end "${DEVICE:-cuda}" --commit "$commit" --output "$output/throughput-gpu.jsonl"
}

predict all-MiniLM-L6-v2 bundling/bl-span:8
predict all-mpnet-base-v2 bundling/bl-span:8
"${PYTHON:-python3}" "$(dirname "$0")/training_speed.py" --data "$folder/data" --device "${DEVICE:-cuda}" \
    --encoder-folder "$folder/encoders/all-MiniLM-L6-v2" --before "$before" --recipes bundling/bl-span,baseline \
    --precisions no --sentences "${TRAIN:-3000}" --dev "${DEV:-500}" --rounds "${ROUNDS:-3}" \
    --commit "$commit" --output "$output/training_speed.jsonl"
predict all-MiniLM-L6-v2 bundling/bl-seq:8,deep_span/proposals:8,discontinuous:8
