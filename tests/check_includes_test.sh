#!/bin/bash
# Plants each kind of forbidden include in a tiny project and expects check_includes.sh to name it.
set -euo pipefail
check="$(dirname "${BASH_SOURCE[0]}")/check_includes.sh"
folder=$(mktemp -d "${TMPDIR:-/tmp}/includes.XXXXXX")
trap 'rm -rf "$folder"' EXIT
mkdir "$folder"/{core,text,vision,datasets,train}

fresh() {
    rm -f "$folder"/*/*
    printf '#include "core/a.h"\n#include <stdio.h>\n#include <png.h>\n' >"$folder/vision/a.c"
    printf '#include "vision/image.h"\n' >"$folder/datasets/a.c"
}

# plant FILE LINE EXPECTED: the line in the file must be refused with the expected words.
plant() {
    local output
    fresh
    printf '%s\n' "$2" >>"$folder/$1"
    if output=$("$check" "$folder" 2>&1); then
        echo "not noticed: $2 in $1" >&2
        exit 1
    fi
    [[ $output == *"$3"* ]] || { echo "wrong message for $2 in $1: $output" >&2; exit 1; }
}

fresh
"$check" "$folder" >/dev/null
plant core/b.c '#include "text/tokenizer.h"' 'core/ may not see text/'
plant text/b.h '#  include "vision/image.h"' 'text/ may not see vision/'
plant vision/b.c '#include "train/step.h"' 'vision/ may not see train/'
plant datasets/b.c '#include "vision/patches.h"' 'datasets/ may not see vision/patches.h'
plant text/b.c '#include <png.h>' 'is included by text/b.c already'
plant text/b.h '#include <zlib.h>' 'not in a header'
plant core/b.c '#include "a.h"' 'wants its folder'
echo "seven planted includes were found"
