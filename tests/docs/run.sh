#!/bin/bash
# run.sh VLP FILE...: runs every command in the ```sh blocks of Markdown files, in one scratch folder
# that holds what the examples name. Blocks marked ```sh norun are left out. Training is made tiny:
# keys and bounds are added behind what the documentation says.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
vlp=$(realpath "$1")
shift
mapfile -t documents < <(realpath "$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The program that the examples call. Exit code 3 (something was skipped) fails here too.
mkdir "$work/bin"
cat >"$work/bin/vlp" <<END
#!/bin/bash
tiny=()
if [[ \$1 == pretrain && \$* != *--help* && \$* != *--resume* ]]; then
    tiny=(--steps 1 --batch 2)
    for pair in image_size=16 patch=8 width=16 heads=2 vision_depth=1 text_depth=1 embedding=16 \
        text_width=0 text_heads=0 eval_rows=4; do
        tiny+=(--set "\$pair")
    done
fi
exec "$vlp" "\$@" "\${tiny[@]}"
END
chmod +x "$work/bin/vlp"
export PATH=$work/bin:$PATH

# ---- what the examples name -----------------------------------------------------------------

images=$here/../data/images/files
mkdir "$work/stage"
cd "$work/stage"
mkdir -p photos folders/train/red_fox folders/dog mnist
names=(one two three four five six)
files=(gray.jpg q30-420.jpg progressive-420.jpg cmyk.jpg palette8.png gray8.png)
for i in "${!names[@]}"; do
    name=${names[i]}.${files[i]##*.}
    cp "$images/${files[i]}" "photos/$name"
    printf 'a picture called %s\nnumber %s\n' "${names[i]}" "${names[i]}" >"photos/${names[i]}.txt"
    paths+=("$name")
done
cp photos/one.jpg folders/train/red_fox/1.jpg
cp photos/two.jpg folders/dog/1.jpg
{
    echo image,caption,split
    for i in "${!paths[@]}"; do
        splits=(train train train train val test)
        echo "photos/${paths[i]},picture ${names[i]} from a table,${splits[i]}"
    done
} >captions.csv
printf 'name\twords\n%s\tfrom a table with tabs\n' "${paths[0]}" >captions.tsv
printf '{"image": "%s", "caption": ["a red car", "a car"]}\n' "${paths[1]}" >pairs.jsonl
printf '{"images": [{"id": 7, "file_name": "%s"}], "annotations": [{"image_id": 7, "caption": "a hat"}]}' \
    "${paths[2]}" >annotations.json
printf '{"images": [{"filename": "%s", "split": "test", "sentences": [{"raw": "a cup"}]}]}' \
    "${paths[3]}" >dataset.json
printf '[{"image": "%s", "caption": "a tree"}]' "${paths[4]}" >albef.json
printf 'a photo of a {}\na {}\n' >templates.txt
printf 'zero\none\n' >names.txt
printf '\0\0\10\3\0\0\0\2\0\0\0\2\0\0\0\2abcdefgh' >mnist/train-images-idx3-ubyte
printf '\0\0\10\1\0\0\0\2\0\1' >mnist/train-labels-idx1-ubyte
printf 'a first line\na second line\n' >corpus.txt
mkdir -p hf/train hf/test shards
for split in train test; do
    cp photos/six.png "hf/$split/$split.png"
    printf 'file_name,text\n%s.png,a picture of %s\n' "$split" "$split" >"hf/$split/metadata.csv"
done
printf '%s#0\ta house\n%s#1\ta home\n' "${paths[0]}" "${paths[0]}" >results.token
printf 'a hill\thttp://example.org/1\n' >cc.tsv
printf 'http://example.org/1\tphotos/%s\n' "${paths[1]}" >addresses.tsv
cp photos/one.jpg photos/7.jpg
cp photos/two.jpg photos/COCO_train2014_000000000007.jpg
printf '[{"id": 7, "regions": [{"image_id": 7, "phrase": "a door"}]}]' >region_descriptions.json
printf '{"data_subtype": "train2014", "questions": [{"image_id": 7, "question_id": 70, "question": "What?"}]}' \
    >v2_OpenEnded_mscoco_train2014_questions.json
printf '{"annotations": [{"question_id": 70, "answers": [{"answer": "a dog"}, {"answer": "a cat"}]}]}' \
    >v2_mscoco_train2014_annotations.json
printf '[{"image": "%s", "conversations": [{"from": "human", "value": "<image>Describe it."}, {"from": "gpt", "value": "a boat"}]}]' \
    "${paths[2]}" >llava.json
for shard in 000 001; do
    cp photos/three.jpg "shards/$shard-a.jpg"
    echo "a caption in $shard" >"shards/$shard-a.txt"
    (cd shards && tar cf "$shard.tar" "$shard-a.jpg" "$shard-a.txt" && rm "$shard-a.jpg" "$shard-a.txt")
done
# without the member that its own test wants refused
cp "$here/../data/datasets/good.zip" photos.zip

# ---- running --------------------------------------------------------------------------------

for file in "${documents[@]}"; do
    awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$file" >"$work/commands.sh"
    [[ -s $work/commands.sh ]] || { echo "$file has no \`\`\`sh block" >&2; exit 1; }
    bash -exuo pipefail "$work/commands.sh" >"$work/out" 2>"$work/err" || {
        status=$?
        tail -n 5 "$work/out" "$work/err" >&2
        echo "$file: a command of its examples fails with exit code $status" >&2
        exit 1
    }
    echo "$(basename "$file"): $(grep -c '^vlp ' "$work/commands.sh") commands work"
done
