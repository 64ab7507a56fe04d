# One static library a folder, with the project's warnings and sanitizers.

set(VLP_WARNINGS -Wall -Wextra -Wshadow -Wconversion -Wvla -Wstrict-prototypes
                 -Wmissing-prototypes -Wno-unknown-pragmas)

add_library(vlp_flags INTERFACE)
target_include_directories(vlp_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_definitions(vlp_flags INTERFACE _GNU_SOURCE VLP_VERSION="${PROJECT_VERSION}")
target_compile_options(vlp_flags INTERFACE ${VLP_WARNINGS} -fno-math-errno -fno-trapping-math
                                           $<$<BOOL:${VLP_WERROR}>:-Werror>)
if(VLP_SANITIZE)
  target_compile_options(vlp_flags INTERFACE -fsanitize=address,undefined
                                             -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(vlp_flags INTERFACE -fsanitize=address,undefined)
endif()
if(VLP_FUZZ)
  target_compile_options(vlp_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# vlp_package(PREFIX NAME): an outside library by pkg-config, also named in the installed vlp.pc.
macro(vlp_package prefix name)
  pkg_check_modules(${prefix} REQUIRED IMPORTED_TARGET ${name})
  list(APPEND VLP_PACKAGES ${name})
endmacro()

# vlp_optional(PREFIX LIBRARY HEADER): the target vlp_<prefix>; where VLP_PREFIX is on and both are
# found it brings the library and defines VLP_PREFIX.
macro(vlp_optional prefix library header)
  string(TOLOWER vlp_${prefix} vlp_optional_target)
  add_library(${vlp_optional_target} INTERFACE)
  find_library(${prefix}_LIBRARY ${library})
  find_path(${prefix}_INCLUDE_DIR ${header})
  if(VLP_${prefix} AND ${prefix}_LIBRARY AND ${prefix}_INCLUDE_DIR)
    target_link_libraries(${vlp_optional_target} INTERFACE ${${prefix}_LIBRARY})
    target_include_directories(${vlp_optional_target} SYSTEM INTERFACE ${${prefix}_INCLUDE_DIR})
    target_compile_definitions(${vlp_optional_target} INTERFACE VLP_${prefix})
    list(APPEND VLP_LIBRARIES -l${library})
  endif()
endmacro()

# vlp_folder(NAME OUTSIDE_LIBRARIES...): every .c file of the folder is the library vlp_NAME.
function(vlp_folder name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${name}/*.c)
  if(sources)
    add_library(vlp_${name} STATIC ${sources})
    target_link_libraries(vlp_${name} PUBLIC vlp_flags OpenMP::OpenMP_C Threads::Threads m
                                      PRIVATE ${ARGN})
  else()
    add_library(vlp_${name} INTERFACE)
  endif()
endfunction()

# vlp_link(NAME FOLDERS...): what a folder may use; the include test checks the same arrows.
function(vlp_link name)
  get_target_property(type vlp_${name} TYPE)
  foreach(other ${ARGN})
    if(type STREQUAL INTERFACE_LIBRARY)
      target_link_libraries(vlp_${name} INTERFACE vlp_${other})
    else()
      target_link_libraries(vlp_${name} PUBLIC vlp_${other})
    endif()
  endforeach()
endfunction()

# vlp_double_precision(FOLDERS...): the library vlp_f64, the same sources with vlp_real = double.
function(vlp_double_precision)
  set(sources)
  set(libraries)
  foreach(name ${ARGN})
    get_target_property(type vlp_${name} TYPE)
    if(NOT type STREQUAL INTERFACE_LIBRARY)
      get_target_property(own vlp_${name} SOURCES)
      get_target_property(links vlp_${name} LINK_LIBRARIES)
      list(FILTER links EXCLUDE REGEX "^vlp_(core|text|vision|fusion|objectives)$")
      list(APPEND sources ${own})
      list(APPEND libraries ${links})
    endif()
  endforeach()
  add_library(vlp_f64 STATIC EXCLUDE_FROM_ALL ${sources})
  target_compile_definitions(vlp_f64 PUBLIC VLP_REAL_DOUBLE)
  target_link_libraries(vlp_f64 PUBLIC ${libraries})
endfunction()
