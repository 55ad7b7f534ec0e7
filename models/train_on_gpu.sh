#!/usr/bin/env bash
# The models of wingspan-bio-small on one GPU with 80 GB or more, side by side; what is there already is not run again:
#
#   WINGSPAN_DATA=DATA models/train_on_gpu.sh FOLDER BASE SMALL [OPTIONS...]
#
# FOLDER gets the models, rows.jsonl and logs; BASE is the teachers' encoder (shared/encoders/fetch_mpnet.sh), SMALL the
# students' (models/fetch_gte_small.py, six layers). Students with teachers wait for three of them. OPTIONS are for
# rehearsals: `--limit 4 --set train.epochs=1`. UNTAUGHT and SINGLE are how many of these runs there are at once, PYTHON
# the interpreter, COMMIT what the rows name where there is no git. The best student is then made the installed model,
# on any machine:
#
#   make model STUDENT=FOLDER/student-...
set -eu
folder=$1 base=$2 small=$3
shift 3
options=("$@")
cd "$(dirname "$0")/.."
mkdir -p "$folder"
export PYTHONPATH=src HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True  # otherwise processes keep memory that others need
nvidia-cuda-mps-control -d || echo "no MPS: processes take turns on the GPU"

pids=() failed=0
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT  # nothing goes on alone

stage() { # NAME WORKERS ENCODER OPTIONS...
    local name=$1 workers=$2 encoder=$3
    shift 3
    "${PYTHON:-python3}" models/train_models.py --data "$WINGSPAN_DATA" --folder "$folder" --encoder "$encoder" \
        --workers "$workers" --commit "${COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}" \
        --output "$folder/$name.jsonl" "$@" ${options[@]+"${options[@]}"} >> "$folder/$name.log" 2>&1
}

stage untaught "${UNTAUGHT:-4}" "$small" --stage students --kinds alone,copies & pids+=($!)
stage single "${SINGLE:-2}" "$small" --stage single & pids+=($!)
if stage teachers 3 "$base" --stage teachers; then
    stage taught 6 "$small" --stage students --kinds student,taught & pids+=($!)
else
    failed=1  # students of fewer teachers would count as done
fi
for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
cat "$folder"/{teachers,taught,untaught,single}.jsonl > "$folder/rows.jsonl" || failed=1
[ $failed = 0 ] || echo "some runs failed: see the logs in $folder, and run the same command again for these"
exit $failed
