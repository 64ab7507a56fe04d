# cmake -DOUT=recipes.c -P recipes.cmake FILE.json...: the recipes as C strings.
set(rows "")
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE 0 ${last})
  if(CMAKE_ARGV${i} MATCHES "\\.json$")
    get_filename_component(name ${CMAKE_ARGV${i}} NAME_WE)
    file(READ ${CMAKE_ARGV${i}} text)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "\n" "\\n\"\n     \"" text "${text}")
    string(APPEND rows "    {\"${name}\",\n     \"${text}\"},\n")
  endif()
endforeach()
file(WRITE ${OUT} "#include \"train/recipes.h\"\n
const vlp_builtin_recipe vlp_builtin_recipes[] = {\n${rows}};
const size_t vlp_builtin_recipe_count =
    sizeof vlp_builtin_recipes / sizeof vlp_builtin_recipes[0];\n")
