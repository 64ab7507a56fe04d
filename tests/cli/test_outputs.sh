#!/bin/sh
# Files named for writing are never files that the command reads; lost output is an error.
. "$(dirname "$0")/lib.sh"

cp pairs.db kept.db
run 2 index pairs.db pictures.jsonl --errors pairs.db
complains "would overwrite"
run 2 index new.db pictures.jsonl --errors new.db
complains "would overwrite"
run 2 index new.db pictures.jsonl --errors pictures.jsonl
complains "would overwrite"
run 2 eval run --data pairs.db --report run/config.json
complains "would overwrite"
run 2 eval run --data pairs.db --report kept.db
complains "would overwrite"
run 2 search pairs.db red --model run --html /dev/full
complains "not a regular file"
cmp -s pairs.db kept.db || fail "the index changed"

"$VLP" --help >/dev/full 2>err && fail "help into a full disk"
complains "cannot write the output"

run 2 pretrain --data pairs.db --out run --resume --set lr=0.5
complains "leave --set away"
