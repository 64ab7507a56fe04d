#!/bin/bash
# run.sh FUZZER SECONDS: runs one fuzz target on its seeds. What it finds goes on to be used the next
# time; an input that crashes it is kept beside the target and named. VLP_FUZZ_SEED chooses other
# mutations (0: others every time).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
fuzzer=$1 seconds=$2
name=$(basename "$fuzzer") data=$here/../data
work=$fuzzer.corpus
mkdir -p "$work"

# Beside the seeds written for a target, the fixtures of other tests that it can read.
seeds=("$here/seeds/$name")
case $name in
fuzz_image) seeds+=("$data/images/files" "$data/images/formats" "$data/images/bad") ;;
fuzz_safetensors) seeds+=("$data/parity/optim-lamb") ;;
fuzz_torch_file) seeds+=("$data/checkpoints") ;;
fuzz_model_config) seeds+=("$data/parity/clip-hf" "$data/parity/bert-mlm" "$data/parity/vit-hf-model") ;;
esac

for folder in "${seeds[@]}"; do
    [[ -d $folder ]] || continue
    find "$folder" -type f -size -33k | while read -r file; do
        cp "$file" "$work/$(basename "$folder")-$(basename "$file")"
    done
done
"$fuzzer" "$work" -seed="${VLP_FUZZ_SEED:-1}" -max_total_time="$seconds" -max_len=32768 \
    -timeout=20 -rss_limit_mb=2048 -artifact_prefix="$fuzzer." -print_final_stats=1 -verbosity=0 \
    -close_fd_mask=0
