# A portable build holds the folders kernels/ once for each level of x86-64; the program takes the best its CPU has
# (docs/design.md, Portable builds). The sources know nothing of it.
set(CAPSTAN_LEVELS x86-64-v2 x86-64-v3 x86-64-v4)

# capstan_static_library(target SOURCES...): of a portable build, the sources in folders kernels/ for every level.
function(capstan_static_library target)
  set(sources ${ARGN})
  set(kernels)
  if(CAPSTAN_X86 AND NOT CAPSTAN_NATIVE)
    set(kernels ${ARGN})
    list(FILTER kernels INCLUDE REGEX "(^|/)kernels/")
    list(FILTER sources EXCLUDE REGEX "(^|/)kernels/")
  endif()
  capstan_batches(sources ${target} ${sources})
  add_library(${target} STATIC ${sources})
  if(kernels)
    capstan_kernels(${target} ${kernels})
  endif()
endfunction()

# capstan_kernels(target SOURCES...): adds them to `target`, behind one jump each.
function(capstan_kernels target)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/kernels/${target})
  file(MAKE_DIRECTORY ${folder})
  foreach(level ${CAPSTAN_LEVELS})
    set(kernels ${target}_kernels_${level})
    add_library(${kernels} OBJECT ${ARGN})
    set_target_properties(${kernels} PROPERTIES CAPSTAN_LEVEL ${level} INTERPROCEDURAL_OPTIMIZATION OFF)
    target_compile_definitions(${kernels} PRIVATE $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>)
    target_link_libraries(${kernels} PRIVATE capstan_flags)
    set(object ${folder}/${level}.o)
    add_custom_command(OUTPUT ${object} BYPRODUCTS ${object}.names
      COMMAND ${CMAKE_SOURCE_DIR}/cmake/join_kernels.sh ${CMAKE_NM} ${CMAKE_LINKER} ${CMAKE_OBJCOPY} ${level} ${object}
              $<TARGET_OBJECTS:${kernels}>
      DEPENDS ${CMAKE_SOURCE_DIR}/cmake/join_kernels.sh $<TARGET_OBJECTS:${kernels}>
      COMMENT "Joining the ${level} kernels of ${target}" COMMAND_EXPAND_LISTS VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  add_custom_command(OUTPUT ${folder}/dispatch.cpp
    COMMAND ${CMAKE_SOURCE_DIR}/cmake/dispatch_kernels.sh ${folder}/dispatch.cpp ${objects}
    DEPENDS ${CMAKE_SOURCE_DIR}/cmake/dispatch_kernels.sh ${objects} VERBATIM)
  set_source_files_properties(${folder}/dispatch.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  target_sources(${target} PRIVATE ${folder}/dispatch.cpp ${objects})
endfunction()
