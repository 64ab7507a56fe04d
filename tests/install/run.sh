#!/bin/bash
# run.sh CMAKE BUILD CC [FLAG...]: installs BUILD into a fresh prefix, trains a model of one step
# with the installed program, and compiles embedder.c against the installed headers and library.
# Then every installed header must compile alone.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cmake=$1 build=$2 cc=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$cmake" --install "$build" --prefix "$work/first" >/dev/null
mv first moved # an installed tree may be moved
vlp=$work/moved/bin/vlp
pc=$(find moved -name vlp.pc)
export PKG_CONFIG_PATH=$work/${pc%/*}

mkdir pairs
for name in gray q30-420; do
    cp "$here/../data/images/files/$name.jpg" pairs/
    printf 'a picture called %s\n' "$name" >"pairs/$name.txt"
done
"$vlp" index pairs.db pairs -q
"$vlp" pretrain clip --size nano --data pairs.db --out run --steps 1 --batch 2 --vocab 64 -q \
    --set image_size=16 --set width=16 --set heads=2 --set vision_depth=1 --set text_depth=1 \
    --set embedding=24

read -ra flags < <(pkg-config --cflags --libs vlp)
"$cc" -std=c11 -Wall -Wextra -Werror "$@" "$here/embedder.c" "${flags[@]}" -o embedder
width=$(./embedder run)
[[ $width == 24 ]] || { echo "the width is \"$width\", not 24" >&2; exit 1; }

read -ra flags < <(pkg-config --cflags vlp)
cd moved/include/vlp
for header in */*.h; do
    echo "#include <$header>" >"$work/alone.c"
    "$cc" -std=c11 -Wall -Wextra -Werror -fsyntax-only "${flags[@]}" "$work/alone.c" || {
        echo "$header does not compile alone" >&2
        exit 1
    }
done
echo "installed, linked and ran; $(ls */*.h | wc -l) headers compile alone"
