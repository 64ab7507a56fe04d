#!/bin/bash
# table.sh PARITY FOLDER...: docs/parity.md on standard output, from a run of the reference cases in
# the folders. Cases without a runner yet are left out.
#     tests/parity/table.sh build/parity tests/data/parity/* >docs/parity.md
set -euo pipefail
parity=$1
shift

cat <<'HEAD'
# Reference numbers

`build/parity FOLDER...` computes reference cases: forward values, every loss and the gradient of every
parameter, loaded by the code that loads people's checkpoints. The expected values are those of the
reference implementation in double precision, so single precision alone costs about a tenth of a limit.
A folder holds `case.json` (what is computed, and the limits), `config.json`, the weights in the reference's
own layout, `inputs.safetensors` and `expected.safetensors`.

This page is what a command prints:

```sh norun
tests/parity/table.sh build/parity tests/data/parity/* >docs/parity.md
```

`parity --precision bf16 FOLDER...` runs the forward passes in bfloat16 and compares values, not gradients:
|x - e| / |e| in euclidean norms, within 1e-2. The last column is the largest difference of a case; where it is
above, the case misses: values that are small differences of larger terms (logits, similarities, features), and
losses.

The small cases are in `tests/data/parity/` and run with the other tests; the rest run from any folder that
is given. The share is the largest error of the case's tensors, each in parts of its own limit.

| case | reference | tensors | largest error, share of its limit | | bf16 |
| --- | --- | --- | --- | --- | --- |
HEAD

declare -A seen=()
for folder in "$@"; do
    [[ -e $folder/case.json ]] || continue
    name=$(basename "$folder")
    [[ -z ${seen[$name]:-} ]] || continue
    seen[$name]=1
    line=$("$parity" "$folder" 2>/dev/null | tail -n 1) || true
    [[ $line =~ :\ (PASS|FAIL),\ ([0-9]+)\ of\ ([0-9]+)\ .*\ ([0-9]+)\ not\ computed.*error\ ([0-9.]+%) ]] ||
        continue
    [[ ${BASH_REMATCH[4]} -lt ${BASH_REMATCH[3]} && ${BASH_REMATCH[2]} -gt 0 ]] || continue
    source=$(sed -n 's/^ *"source": *"\(.*\)",*$/\1/p' "$folder/case.json" | head -n 1)
    [[ -n $source ]] || source=$(sed -n 's/^ *"reference": *"\(.*\)",*$/\1/p' "$folder/case.json" | head -n 1)
    row="| $name | ${source//|//} | ${BASH_REMATCH[2]} of ${BASH_REMATCH[3]} | ${BASH_REMATCH[5]} | ${BASH_REMATCH[1]} |"
    half=
    [[ $name =~ ^(optim|image|tokenizer)- ]] || half=$("$parity" --precision bf16 "$folder" 2>/dev/null | tail -n 1) || true
    if [[ $half =~ :\ (PASS|FAIL),\ bf16,\ .*difference\ ([0-9.e+-]+) && ${BASH_REMATCH[2]} != 0.00e+00 ]]; then
        printf '%s %s %s |\n' "$row" "${BASH_REMATCH[2]}" "${BASH_REMATCH[1]}"
    else
        printf '%s |\n' "$row"
    fi
done
