#!/bin/bash
# Word vectors of 300 numbers on the training text of three corpora, for `typed_spans`: no dev or test text in them.
#   WINGSPAN_DATA=... benchmarks/train_vectors.sh /tmp/vectors
set -e
mkdir -p "$1"
for corpus in genia litbank germeval14; do
    python -m wingspan vectors "$WINGSPAN_DATA/$corpus/train.jsonl" --output "$1/$corpus.npz" \
        --against "$WINGSPAN_DATA/$corpus/dev.jsonl" --against "$WINGSPAN_DATA/$corpus/test.jsonl" \
        --size 300 --min-count 1 --epochs 25 --seed 1 --threads 1 --json "$1/$corpus.json"
done
