#!/bin/sh
# What is inside: runs, weights, indexes, recipes; a damaged part is told and the rest shown.
. "$(dirname "$0")/lib.sh"

exits 0 info "$work/run"
says '^model: vlp'
says '  vision   1 layers of width 32'
says '^tokenizer: wordpiece'
says '^recipe: clip nano'
says '^last step: 3,'
exits 0 info "$work/run" --json
says '"kind":"run"'
says '"parts":{"vision":'

exits 0 info "$work/run/model.safetensors"
says 'parameters in .* tensors'
exits 0 info "$work/run/model.safetensors" --tensors
says '^F32    vision.patch_embed.weight \[32, 768\]$'

exits 0 info "$work/pairs.db"
says 'an index of 30 images'
exits 0 info clip
says '^recipe: clip'
exits 0 info "$work/run/recipe.json"
says 'objectives: itc'

exits 2 info clpi
warns 'did you mean "clip"'
exits 2 info "$work/no-such-file"
exits 2 info "$work/pictures.jsonl"
exits 2 info

rm -rf "$work/damaged"
cp -r "$work/run" "$work/damaged"
head -c 1000 "$work/run/model.safetensors" >"$work/damaged/model.safetensors"
exits 3 info "$work/damaged"
warns 'damaged/model.safetensors'
says '^tokenizer: wordpiece'

exits 0 stats "$work/pairs.db"
says '^  train '
says 'caption length in characters'
exits 0 stats "$work/pairs.db" --json
says '"images":30,'
exits 2 stats "$work/no-such.db"
warns 'vlp index'
