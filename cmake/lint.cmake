# Targets `format` (rewrites), `format-check` and `lint` (clang-tidy on the compilation database).
set(format ${PROJECT_SOURCE_DIR}/tests/check_format.sh)
add_custom_target(format COMMAND ${format} ${PROJECT_SOURCE_DIR} -i VERBATIM)
add_custom_target(format-check COMMAND ${format} ${PROJECT_SOURCE_DIR} VERBATIM)

find_program(RUN_CLANG_TIDY NAMES run-clang-tidy run-clang-tidy-14)
find_program(CLANG_TIDY NAMES clang-tidy clang-tidy-14)
if(RUN_CLANG_TIDY AND CLANG_TIDY)
  # recipes.c has to be there, and gcc's warning options mean nothing to clang-tidy.
  add_custom_target(lint COMMAND ${RUN_CLANG_TIDY} -quiet -clang-tidy-binary ${CLANG_TIDY}
                                 -p ${CMAKE_BINARY_DIR} -extra-arg=-Wno-unknown-warning-option
                                 "${PROJECT_SOURCE_DIR}/(core|text|vision|fusion|objectives|datasets|train|apps|tools)/"
                    DEPENDS ${CMAKE_BINARY_DIR}/recipes.c USES_TERMINAL VERBATIM)
else()
  add_custom_target(lint COMMAND ${CMAKE_COMMAND} -E echo
                                 "lint needs clang-tidy: apt-get install clang-tidy"
                    COMMAND ${CMAKE_COMMAND} -E false)
endif()
