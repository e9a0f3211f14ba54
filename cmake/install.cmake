# `cmake --install`: the program with its recipes and documents (component `program`), and the libraries for
# find_package(capstan) (component `library`; docs/library.md). `cpack` packs the program as a Debian package.
include(CMakePackageConfigHelpers)
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # cpack packs what there is: the program, not the tests

set(generated ${CMAKE_BINARY_DIR}/generated)

# The rpath to OpenBLAS is a link option already (cmake/dependencies.cmake): nothing is to be changed on the way.
set_target_properties(capstan PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME program)
install(TARGETS capstan RUNTIME)
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/capstan)
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The libraries. Headers keep their paths below include/capstan, which the targets bring as include folder, so that
# `#include "core/array/array.hpp"` means the same inside and outside. Those of kernels that are made for one instruction set
# are private: no header that others may include needs them.
set(CAPSTAN_PRIVATE_HEADERS "/kernels/(simd(_sums)?|[a-z]*_functions|[a-z_]*recurrence)[.]hpp$")
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME library)
set(libraries capstan_flags)
foreach(room core nn models data train run serve apps)
  foreach(suffix "" _f64 _shared)
    if(TARGET capstan_${room}${suffix})
      list(APPEND libraries capstan_${room}${suffix})
      set_target_properties(capstan_${room}${suffix} PROPERTIES EXPORT_NAME ${room}${suffix})
      list(APPEND archives $<TARGET_FILE:capstan_${room}${suffix}>)
    endif()
  endforeach()
endforeach()
add_custom_target(library DEPENDS ${archives})  # what `--component library` installs, without tests
# After `cmake --build ... --target capstan` there is the program alone, and the rest of this file installs nothing else.
install(CODE "foreach(archive ${archives})
    if(NOT CMAKE_INSTALL_COMPONENT AND NOT EXISTS \${archive})
      message(STATUS \"The program alone: \${archive} is not built; cmake --build without --target builds the libraries\")
      set(CMAKE_INSTALL_COMPONENT program)
    endif()
  endforeach()")
foreach(room core nn models data train run serve apps)
  install(DIRECTORY ${room} DESTINATION ${CAPSTAN_INSTALL_HEADERS} FILES_MATCHING PATTERN "*.hpp"
    REGEX ${CAPSTAN_PRIVATE_HEADERS} EXCLUDE)
endforeach()
set_target_properties(capstan_flags PROPERTIES EXPORT_NAME flags)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/capstan)
install(TARGETS ${libraries} EXPORT capstan ARCHIVE)
install(EXPORT capstan FILE capstan-targets.cmake NAMESPACE capstan:: DESTINATION ${package})
include(cmake/instruction_set.cmake)
if(CAPSTAN_X86 AND CAPSTAN_NATIVE)
  capstan_instruction_set(CAPSTAN_INSTRUCTION_SET)
endif()
string(COMPARE NOTEQUAL "${ONEDNN_OPENMP}" "" ONEDNN_USED)
configure_package_config_file(cmake/capstan-config.cmake.in ${generated}/capstan-config.cmake INSTALL_DESTINATION ${package}
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${generated}/capstan-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${generated}/capstan-config.cmake ${generated}/capstan-config-version.cmake cmake/dependencies.cmake
  cmake/instruction_set.cmake DESTINATION ${package})
unset(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME)

include(cmake/doxygen.cmake)
include(cmake/debian.cmake)
