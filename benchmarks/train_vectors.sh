#!/bin/bash
# Word vectors of 300 numbers on the training text of three corpora, for `typed_spans`, without dev or test text.
#   WINGSPAN_DATA=... benchmarks/train_vectors.sh /tmp/vectors
set -e
mkdir -p "$1"
for corpus in genia litbank germeval14; do
    python -m wingspan vectors "$WINGSPAN_DATA/$corpus/train.jsonl" --output "$1/$corpus.npz" \
        --size 300 --min-count 1 --epochs 25 --seed 1 --json "$1/$corpus.json"
done
