# Target `docs`: the public headers (those that are installed) as HTML in <build>/docs/html, with Doxygen's warnings as errors.
# For developers: without doxygen there is no such target.
find_program(DOXYGEN doxygen)
mark_as_advanced(DOXYGEN)
if(NOT DOXYGEN)
  return()
endif()
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} core/*.hpp nn/*.hpp models/*.hpp data/*.hpp train/*.hpp run/*.hpp apps/*.hpp)
list(FILTER headers EXCLUDE REGEX ${CAPSTAN_PRIVATE_HEADERS})
list(JOIN headers " " DOXYGEN_HEADERS)
set(settings ${CMAKE_BINARY_DIR}/generated/Doxyfile)
configure_file(${CMAKE_CURRENT_LIST_DIR}/doxygen/Doxyfile.in ${settings} @ONLY)
set(stamp ${CMAKE_BINARY_DIR}/generated/docs.stamp)
add_custom_command(OUTPUT ${stamp}
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${CMAKE_BINARY_DIR}/docs
  COMMAND ${DOXYGEN} ${settings}
  COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
  DEPENDS ${settings} cmake/doxygen/header.awk cmake/doxygen/page.sed README.md ${headers}
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} COMMENT "Documenting the public headers in ${CMAKE_BINARY_DIR}/docs/html" VERBATIM)
add_custom_target(docs DEPENDS ${stamp})
