#!/bin/sh
# A tokenizer from an index and from text; encoding and decoding undo each other.
. "$(dirname "$0")/lib.sh"
dir=tokenizer

run 0 tokenizer train pairs.db --kind wordpiece --vocab 120 --out "$dir"
[ -s "$dir/vocab.txt" ] || fail "no vocab.txt"
[ "$(wc -l <"$dir/vocab.txt")" -le 120 ] || fail "more than 120 tokens"

printf 'a small dog\n\na dog, small!\n' >texts.txt
run 0 tokenizer train texts.txt --vocab 60 --out "$dir" --quiet
run 0 tokenizer encode "$dir" texts.txt
lines 3
cp out ids.txt
run 0 tokenizer decode "$dir" ids.txt
printf 'a small dog\n\na dog, small!\n' | cmp -s - out || fail "decoding gives another text"

run 0 tokenizer encode "$dir" --json texts.txt
matches '^{"ids":\[2,.*,3\],"tokens":\["\[CLS\]",.*"\[SEP\]"\]}$'
cp out ids.txt
run 0 tokenizer decode "$dir" ids.txt
printf 'a small dog\n\na dog, small!\n' | cmp -s - out || fail "JSON ids decode otherwise"

"$VLP" tokenizer encode "$dir" <texts.txt | "$VLP" tokenizer decode "$dir" |
    cmp -s - out || fail "a pipe gives another text"

printf 'Dog dog Dog\n' | "$VLP" tokenizer train - --cased --vocab 60 --out "$dir" --quiet
grep -qx Dog "$dir/vocab.txt" || fail "--cased loses the capital"

run 0 tokenizer train texts.txt --kind bpe --vocab 270 --out bytes
[ -s bytes/vocab.json ] && [ -s bytes/merges.txt ] || fail "no vocab.json and merges.txt"
run 0 tokenizer encode bytes texts.txt --json
matches '^{"ids":\[0,.*,2\],"tokens":\["<s>",.*"</s>"\]}$'
cp out ids.txt
run 0 tokenizer decode bytes ids.txt
cmp -s texts.txt out || fail "bytes decode to another text"
run 2 tokenizer train texts.txt --kind bpe --vocab 270 --out "$dir"
complains 'a tokenizer of another kind'
run 2 tokenizer train texts.txt --kind bpe --vocab 100 --out none
complains 'are 261'

run 2 tokenizer train texts.txt --kind unigram --out none
complains 'wordpiece and bpe'
[ ! -e none ] || fail "a refused kind leaves a folder"
run 2 tokenizer trian
complains 'did you mean "train"'
run 2 tokenizer train texts.txt
complains --out
run 2 tokenizer encode no-such-model
echo 'two words' >ids.txt
run 2 tokenizer decode "$dir" ids.txt
complains 'ids.txt:1: '
echo 99999 >ids.txt
run 2 tokenizer decode "$dir" ids.txt
complains 'outside the vocabulary'

# Other kinds: byte-level BPE from its two files and from a tokenizer.json.
cases=$(dirname "$0")/../data/parity
for case in tokenizer-roberta tokenizer-json-roberta; do
    echo 'Hello world' >texts.txt
    run 0 tokenizer encode "$cases/$case" texts.txt --json
    matches '"tokens":\["<s>",.*"</s>"\]'
    cp out ids.txt
    run 0 tokenizer decode "$cases/$case" ids.txt
    matches '^Hello world$'
    run 0 info "$cases/$case"
    matches 'tokenizer: byte_bpe, 1161 tokens; pad 1 unk 3 cls 0 sep 2 mask 1160'
done
# nothing that was meant as an id is dropped
for bad in '[2,"x",3]' '[2,null,3]' '[2,1.5]' '{"ids":[2,[3]]}'; do
    echo "$bad" >ids.txt
    run 2 tokenizer decode "$dir" ids.txt
    complains 'ids.txt:1: element 1 of the ids is no whole number'
done
for bad in '{"tokens":[2]}' '{"ids":5}'; do
    echo "$bad" >ids.txt
    run 2 tokenizer decode "$dir" ids.txt
    complains 'ids.txt:1: no ids'
done

# a model keeps its vocabulary
cp run/vocab.txt kept.txt
run 2 tokenizer train pairs.db --vocab 60 --out run
complains "--out run holds a model (config.json)"
cmp -s run/vocab.txt kept.txt || fail "the model's vocabulary changed"

# options of another job
run 2 tokenizer encode "$dir" texts.txt --vocab 60
complains "encode takes no --vocab, which is for train"
run 2 tokenizer decode "$dir" texts.txt --json
complains "decode takes no --json, which is for encode"
exit 0
