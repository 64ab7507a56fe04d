#!/bin/sh
# vlp convert of models that vlp trained: into the layouts of ALBEF, BLIP and Hugging Face, with the
# names that the reference's checkpoints have, and back, bit for bit, with equal evaluations.
cases=$(cd "$(dirname "$0")/../data/parity" && pwd)
. "$(dirname "$0")/lib.sh"
tiny="--size nano --set image_size=32 --set patch=16 --set width=32 --set heads=2
      --set vision_depth=1 --set embedding=16 --batch 8 --threads 2 --steps 2 --vocab 200
      --data pairs.db --quiet"
short="--set text_depth=1 --set fusion_depth=1"
run 0 pretrain vlp $tiny $short --out vlp
run 0 pretrain albef $tiny $short --set momentum.queue=16 --out albef
run 0 pretrain blip $tiny --set text_depth=2 --set momentum.queue=16 --out blip
run 0 pretrain siglip $tiny --set text_depth=1 --out siglip

score() { "$VLP" eval "$1" --data pairs.db --split train --json --quiet; }

# there_and_back MODEL FORMAT
there_and_back() {
    [ -e "$1-own" ] || run 0 convert "$1" "$1-own" --to vlp
    run 0 convert "$1" "$1-$2" --to "$2"
    run 0 convert "$1-$2" "$1-$2-back" --to vlp
    cmp -s "$1-own/model.safetensors" "$1-$2-back/model.safetensors" ||
        fail "$1 as $2 and back has other tensors"
    score "$1" >out || fail "no evaluation of $1"
    score "$1-$2" | cmp -s - out || fail "$1 as $2 is evaluated otherwise"
}
there_and_back vlp albef
there_and_back albef albef
there_and_back blip blip
there_and_back blip hf
there_and_back run hf
there_and_back run albef
cmp -s run/model.safetensors run-own/model.safetensors || fail "our own format changed a file"
run 0 info albef-albef
matches "named as those of ALBEF"
run 0 info run-hf
matches "named as those of VisionTextDualEncoder"
grep -q VisionTextDualEncoderModel run-hf/config.json || fail "no class for Hugging Face"

# The names are those of the reference's files, but for queues, which a run fills, and what is ours.
tensor_names "$cases/albef-pretrain" | grep -v '_queue$\|queue_ptr' >want
tensor_names albef-albef | cmp -s - want || fail "ALBEF's names"
tensor_names vlp-albef | grep -v '^logit_scale$\|mask_token$' | cmp -s - want || fail "ALBEF's names"

# An exported model trains further, its momentum twin too, and captions are written with it.
run 0 pretrain albef --init albef-albef --data pairs.db --out more --steps 1 --batch 8 --threads 2 \
    --set momentum.queue=8 --quiet
run 0 caption blip pictures/000.png pictures/001.png
cp out captions
run 0 caption blip-hf pictures/000.png pictures/001.png
cmp -s out captions || fail "Hugging Face's BLIP writes other captions"
run 0 caption blip-blip pictures/000.png pictures/001.png
cmp -s out captions || fail "the official BLIP writes other captions"

# What has no place is said, and nothing is left behind.
refuse() {
    run 2 convert "$1" never --to "$2"
    complains "$3"
    [ ! -e never ] || fail "a folder was left behind"
}
refuse vlp hf "VisionTextDualEncoderModel has no fusion stack; --to albef"
refuse run openclip "its text tower is a BERT, not CLIP's"
refuse run openai "its text tower is a BERT, not CLIP's"
refuse siglip hf "the mean or a map"
refuse siglip albef "the mean or a map"
refuse blip albef "--to blip or hf"
refuse vlp blip "--to albef can hold"
refuse "$cases/coca-openclip" vlp "no such towers"

# A pooler that does something is no model of ours.
sed 's/"vlp"/"other"/' run-hf/config.json >config && cp config run-hf/config.json
run 2 eval run-hf --data pairs.db
complains "opens only if vlp wrote it"
