#!/bin/sh
# What is inside: runs, weights, indexes, recipes; a damaged part is told and the rest shown.
. "$(dirname "$0")/lib.sh"

run 0 info run
matches '^model: vlp'
matches '  vision   1 layers of width 32'
matches '^tokenizer: wordpiece'
matches '^recipe: clip nano'
matches '^last step: 3,'
run 0 info run --json
matches '"kind":"run"'
matches '"parts":{"vision":'

run 0 info run/model.safetensors
matches 'parameters in .* tensors'
run 0 info run/model.safetensors --tensors
matches '^F32    vision.patch_embed.weight \[32, 768\]$'

run 0 info pairs.db
matches 'an index of 30 images'
run 0 info clip
matches '^recipe: clip'
run 0 info run/recipe.json
matches 'objectives: itc'

run 2 info clpi
complains 'did you mean "clip"'
run 2 info no-such-file
run 2 info pictures.jsonl
run 2 info

cp -r run damaged
head -c 1000 run/model.safetensors >damaged/model.safetensors
run 3 info damaged
complains 'damaged/model.safetensors'
matches '^tokenizer: wordpiece'

run 0 stats pairs.db
matches '^  train '
matches 'caption length in characters'
run 0 stats pairs.db --json
matches '"images":30,'
run 2 stats "no-such.db"
complains 'vlp index'

# checkpoints in other containers
data=$(dirname "$0")/../data/checkpoints
case $data in /*) ;; *) data=$OLDPWD/$data ;; esac
run 0 info "$data/training.pt" --tensors
matches '^BF16   bf16 \[2\]$'
run 0 info "$data/sharded-bin"
matches '^weights: 7 parameters in 2 tensors'
run 0 info "$data/sharded/model.safetensors.index.json" --tensors
matches '^F32    b.weight \[3\]$'
run 2 info "$data/refused.pt"
complains 'argparse.Namespace'
run 2 info "$data/old.pt"
complains 'torch.save(torch.load('
