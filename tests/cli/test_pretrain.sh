#!/bin/sh
# vlp pretrain: runs by the recipe albef, from nothing, resumed, and from a released checkpoint.
. "$(dirname "$0")/lib.sh"
data=$(cd "$(dirname "$0")/../data/parity/albef-pretrain" && pwd)
tiny="--set image_size=32 --set patch=16 --set width=32 --set heads=2 --set vision_depth=1
      --set text_depth=1 --set fusion_depth=1 --set embedding=16 --set momentum.queue=20
      --set checkpoint_steps=2 --set eval_every=3 --batch 8 --threads 2"

# A run, and the same one stopped in the middle: the step's numbers are the same.
run 0 pretrain albef $tiny --data pairs.db --out whole --steps 6 --vocab 200 --quiet
run 0 pretrain albef $tiny --data pairs.db --out again --steps 6 --vocab 200 --quiet
cut -d, -f1-9 whole/metrics.jsonl >out
for loss in itc itm mlm; do says "\"$loss\":"; done
cut -d, -f1-9 again/metrics.jsonl | cmp -s - out || fail "two equal runs differ"
cmp -s whole/model.safetensors again/model.safetensors || fail "two equal runs end differently"
grep -q '"plain_temperature": true' whole/config.json || fail "no plain temperature"

# The trained model is a model like any other.
run 0 eval whole --data pairs.db --split test --json
says '"image_to_text"'
run 0 embed pairs.db --model whole --quiet
run 0 search pairs.db "red" --model whole --rerank 3
# the matching head orders the best anew; one alone keeps its place
"$VLP" eval whole --data pairs.db --json >plain.json || fail "eval"
run 0 eval whole --data pairs.db --rerank 1 --json
says '"rerank":1,'
sed 's/"rerank":1,//' out | cmp - plain.json || fail "a rerank of one changes recall"
run 0 eval whole --data pairs.db --rerank 4
says "the best 4 both ways in the order of the matching head"

# From ALBEF's own layout: its sizes, an evaluation before the first step, its tokens.
mkdir albef
cp "$data/config.json" "$data/model.safetensors" albef
{
    printf '[PAD]\n[CLS]\n[SEP]\n[MASK]\n[UNK]\n'
    for c in a b c d e f g h i j k l m n o p q r s t u v w x y z; do echo "$c"; done
    for c in a b c d e f g h i j k l m n o p q; do echo "##$c"; done
} >albef/vocab.txt
run 0 pretrain albef --init albef --data pairs.db --out more --steps 2 --batch 8 --threads 2 \
    --set momentum.queue=8 --set data.val=test
complains "step 0, validation"
grep -q '"step":0,"eval"' more/metrics.jsonl || fail "no evaluation at step 0"
grep -q '"text_positions": 16' more/recipe.json || fail "the sizes are not those of the checkpoint"

# What a plan says is what the run takes; a sanitizer's own memory is no measure.
large="--set image_size=96 --set patch=8 --set width=192 --set heads=3 --set vision_depth=4
       --set text_depth=2 --set fusion_depth=2 --set loader.cache_mb=16 --batch 32 --threads 2"
for precision in fp32 bf16; do
    set -- $large --precision $precision --data pairs.db --vocab 200 --quiet --json
    run 0 pretrain vlp "$@" --plan --steps 4
    planned=$(sed 's/.*"bytes":\([0-9]*\).*/\1/' out)
    run 0 pretrain vlp "$@" --out planned-$precision --steps 4
    measured=$(sed 's/.*"peak_rss_mb":\([0-9]*\).*/\1/' out)
    share=$((measured * 1000000 / (planned / 100)))
    echo "$precision: $measured MB are $share % of the plan" >err
    grep -q __asan_init "$VLP" || [ $share -le 105 ] || fail "more memory than planned"
    grep -q __asan_init "$VLP" || [ $share -ge 60 ] || fail "much less memory than planned"
done

# Where the time of the steps after the first went, beside what the machine can reach.
run 0 pretrain albef $tiny --data pairs.db --out profiled --steps 4 --vocab 200 --quiet --profile
matches '^  linear               backward '
matches '^  (update) '
run 0 pretrain albef $tiny --data pairs.db --out profiled2 --steps 4 --vocab 200 --profile --json
lines 1
matches '"memory_gb_per_s":.*"profile":\[{"op":".*"roofline":'
matches '"op":"(data)"'
run 0 pretrain albef $tiny --data pairs.db --out profiled3 --steps 2 --vocab 200 --quiet --profile
says 'no profile: it begins after 2 steps'

# What no recipe describes is said.
sed 's/"hidden_act": "gelu"/"hidden_act": "relu"/' "$data/config.json" >albef/config.json
run 2 pretrain albef --init albef --data pairs.db --out other --steps 2
complains 'albef cannot be trained further: no recipe has "hidden_act": "relu"'
