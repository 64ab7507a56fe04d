# What `cmake --install` installs beside the program: one library, the headers, and vlp.pc for
# pkg-config. Headers keep their folders below include/vlp, so #include "core/status.h" works.

set(VLP_FOLDERS core text vision fusion objectives datasets train)

# The folders' objects once more as one archive, libvlp.a: nothing is compiled again.
set(objects)
foreach(name ${VLP_FOLDERS})
  list(APPEND objects $<TARGET_OBJECTS:vlp_${name}>)
endforeach()
add_library(vlp_archive STATIC ${objects})
set_target_properties(vlp_archive PROPERTIES OUTPUT_NAME vlp LINKER_LANGUAGE C)
install(TARGETS vlp_archive)

foreach(name ${VLP_FOLDERS})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${name}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vlp
          FILES_MATCHING PATTERN "*.h"
          PATTERN "*_internal.h" EXCLUDE PATTERN "*_state.h" EXCLUDE
          PATTERN "recipes" EXCLUDE)
endforeach()

# Paths in vlp.pc are relative to it, so that --prefix at installation and moved trees work.
file(RELATIVE_PATH VLP_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" VLP_PC_PREFIX ${VLP_PC_PREFIX})
string(REPLACE ";" " " VLP_PC_REQUIRES "${VLP_PACKAGES}")
string(REPLACE ";" " " VLP_PC_LIBRARIES "${VLP_LIBRARIES}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/vlp.pc.in ${CMAKE_BINARY_DIR}/vlp.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/vlp.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
