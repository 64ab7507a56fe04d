#!/bin/sh
# A tokenizer from an index and from text; encoding and decoding undo each other.
. "$(dirname "$0")/lib.sh"
dir=$work/tokenizer
rm -rf "$dir"

exits 0 tokenizer train "$work/pairs.db" --kind wordpiece --vocab 120 --out "$dir"
[ -s "$dir/vocab.txt" ] || fail "no vocab.txt"
[ "$(wc -l <"$dir/vocab.txt")" -le 120 ] || fail "more than 120 tokens"

printf 'a small dog\n\na dog, small!\n' >"$work/texts.txt"
exits 0 tokenizer train "$work/texts.txt" --vocab 60 --out "$dir" --quiet
exits 0 tokenizer encode "$dir" "$work/texts.txt"
[ "$(wc -l <"$out")" -eq 3 ] || fail "a line of text is a line of ids"
cp "$out" "$work/ids.txt"
exits 0 tokenizer decode "$dir" "$work/ids.txt"
printf 'a small dog\n\na dog, small!\n' | cmp -s - "$out" || fail "decoding gives another text"

exits 0 tokenizer encode "$dir" --json "$work/texts.txt"
says '^{"ids":\[2,.*,3\],"tokens":\["\[CLS\]",.*"\[SEP\]"\]}$'
cp "$out" "$work/ids.txt"
exits 0 tokenizer decode "$dir" "$work/ids.txt"
printf 'a small dog\n\na dog, small!\n' | cmp -s - "$out" || fail "JSON ids decode otherwise"

"$VLP" tokenizer encode "$dir" <"$work/texts.txt" | "$VLP" tokenizer decode "$dir" |
    cmp -s - "$out" || fail "a pipe gives another text"

printf 'Dog dog Dog\n' | "$VLP" tokenizer train - --cased --vocab 60 --out "$dir" --quiet
grep -qx Dog "$dir/vocab.txt" || fail "--cased loses the capital"

exits 2 tokenizer train "$work/texts.txt" --kind bpe --out "$work/none"
warns 'wordpiece'
[ ! -e "$work/none" ] || fail "a refused kind leaves a folder"
exits 2 tokenizer trian
warns 'did you mean "train"'
exits 2 tokenizer train "$work/texts.txt"
warns '\-\-out'
exits 2 tokenizer encode "$work/no-such-model"
echo 'two words' >"$work/ids.txt"
exits 2 tokenizer decode "$dir" "$work/ids.txt"
warns 'ids.txt:1: '
echo 99999 >"$work/ids.txt"
exits 2 tokenizer decode "$dir" "$work/ids.txt"
warns 'outside the vocabulary'
