#!/bin/sh
# A value of the wrong type is never read as a missing one: the file, the key and what is wanted are
# named.
. "$(dirname "$0")/lib.sh"

# wrong FILE 'OLD' 'NEW' MESSAGE: one replaced value makes the model unreadable.
wrong() {
    cp "run/$1" kept
    grep -q -e "$2" "run/$1" || fail "no $2 in $1"
    sed "s/$2/$3/" kept >"run/$1"
    run 2 classify run pictures/000.png --classes red,green
    complains "run/$1: \"$4"
    mv kept "run/$1"
}

wrong config.json '"model_type": "vlp"' '"model_type": 5' 'model_type" must be a string'
wrong config.json '"projection_dim": 16' '"projection_dim": "16"' 'projection_dim" must be a whole number'
wrong config.json '"layer_norm_eps": [-0-9e.]*' '"layer_norm_eps": true' 'vision_config.layer_norm_eps" must be a number'
wrong preprocessor_config.json '"image_processor_type": "[A-Za-z]*"' '"image_processor_type": 1' \
    'image_processor_type" must be a string'
wrong preprocessor_config.json '"do_resize": true' '"do_resize": "true"' 'do_resize" must be true or false'
wrong tokenizer_config.json '"max_input_chars_per_word": 100' '"max_input_chars_per_word": 2.5' \
    'max_input_chars_per_word" must be a whole number'
run 0 classify run pictures/000.png --classes red,green

# recipe JSON MESSAGE
recipe() {
    printf '%s\n' "$1" >my.json
    run 2 pretrain my.json --data pairs.db --plan --steps 1
    complains "my.json: $2"
}
recipe '{"base": 5}' '"base" must be a string'
recipe '{"base": "clip", "size": 3}' '"size" must be a string'
recipe '{"base": "clip", "about": []}' '"about" must be a string'
recipe '{"base": "clip", "set": "lr"}' '"set" must be an object'
recipe '{"base": "clip", "sizes": 7}' '"sizes" must be an object'
recipe '{"base": "clip", "set": {"lr": "fast"}}' '"lr" must be a number'
recipe '{"base": "clip", "set": {"width": 1.5}}' 'width is 1.5; it must'
recipe '{"base": "clip", "set": {"mlm": 3}}' 'unknown key "mlm"'
recipe '[]' 'a JSON object is wanted'

# the state of a run
cp -r run other
sed 's/"cursor": [0-9]*/"cursor": "7"/' run/state.json >other/state.json
run 2 pretrain --data pairs.db --out other --resume
complains '"cursor" must be a whole number'
exit 0
