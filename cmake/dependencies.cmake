# What Capstan builds on, all from Debian 12. Read by the build and, installed, by find_package(capstan), which needs the
# same targets; what only the sources include is looked for by the build alone. Every missing package is reported, by name:
# the list CAPSTAN_MISSING holds the reports.
set(CAPSTAN_MISSING "")

function(require_header header package)
  string(MAKE_C_IDENTIFIER "HAVE_${header}" variable)
  find_path(${variable} ${header} ${ARGN})
  mark_as_advanced(${variable})
  if(NOT ${variable})
    set(CAPSTAN_MISSING ${CAPSTAN_MISSING} "Capstan needs <${header}>: install the package ${package}" PARENT_SCOPE)
  endif()
endfunction()

function(require_library variable name package)
  find_library(${variable} ${name})
  mark_as_advanced(${variable})
  if(NOT ${variable})
    set(CAPSTAN_MISSING ${CAPSTAN_MISSING} "Capstan needs lib${name}: install the package ${package}" PARENT_SCOPE)
  endif()
endfunction()

macro(require_package name package)
  find_package(${name} QUIET ${ARGN})
  if(NOT ${name}_FOUND)
    list(APPEND CAPSTAN_MISSING "Capstan needs ${name}: install the package ${package}")
  endif()
endmacro()

require_header(xtensor/xarray.hpp libxtensor-dev)
require_header(xsimd/xsimd.hpp libxsimd-dev)
if(NOT CMAKE_FIND_PACKAGE_NAME)
  require_header(xtensor-blas/xlinalg.hpp libxtensor-blas-dev)
  require_header(CLI/CLI.hpp libcli11-dev)
  require_header(Random123/philox.h librandom123-dev)
  require_header(doctest/doctest.h doctest-dev PATH_SUFFIXES doctest)
  require_header(xxhash.h libxxhash-dev)
endif()
require_package(fmt libfmt-dev)
require_package(spdlog libspdlog-dev)
require_package(yaml-cpp libyaml-cpp-dev)
require_package(nlohmann_json nlohmann-json3-dev)
require_package(ZLIB zlib1g-dev)
require_package(OpenMP "g++ (libgomp)" COMPONENTS CXX)
require_library(XXHASH_LIBRARY xxhash libxxhash-dev)

# The OpenMP build of OpenBLAS, by its path: whatever the system's BLAS alternatives point at, there is one thread pool.
find_library(OPENBLAS_OPENMP openblas
  PATHS /usr/lib/${CMAKE_CXX_LIBRARY_ARCHITECTURE}/openblas-openmp /usr/lib/x86_64-linux-gnu/openblas-openmp NO_DEFAULT_PATH)
find_path(OPENBLAS_INCLUDE cblas.h
  PATHS /usr/include/${CMAKE_CXX_LIBRARY_ARCHITECTURE}/openblas-openmp /usr/include/x86_64-linux-gnu/openblas-openmp NO_DEFAULT_PATH)
mark_as_advanced(OPENBLAS_OPENMP OPENBLAS_INCLUDE)
if(NOT OPENBLAS_OPENMP OR NOT OPENBLAS_INCLUDE)
  list(APPEND CAPSTAN_MISSING "Capstan needs the OpenMP build of OpenBLAS: install the package libopenblas-openmp-dev")
elseif(NOT TARGET capstan::openblas)
  get_filename_component(OPENBLAS_FOLDER ${OPENBLAS_OPENMP} DIRECTORY)
  add_library(capstan::openblas INTERFACE IMPORTED)
  target_include_directories(capstan::openblas INTERFACE ${OPENBLAS_INCLUDE})
  target_link_libraries(capstan::openblas INTERFACE ${OPENBLAS_OPENMP})
  # DT_RPATH rather than DT_RUNPATH, so that nothing in the environment puts another build in its place.
  target_link_options(capstan::openblas INTERFACE LINKER:-rpath,${OPENBLAS_FOLDER} LINKER:--disable-new-dtags)
endif()

# oneDNN is optional. Its OpenMP build only, again for the one thread pool. By its path: its own CMake package asks for
# OpenCL's headers.
if(NOT TARGET capstan::onednn)
  add_library(capstan::onednn INTERFACE IMPORTED)
  if(CAPSTAN_ONEDNN)
    find_library(ONEDNN_LIBRARY dnnl)
    find_path(ONEDNN_INCLUDE oneapi/dnnl/dnnl.h)
    mark_as_advanced(ONEDNN_LIBRARY ONEDNN_INCLUDE)
    if(ONEDNN_LIBRARY AND ONEDNN_INCLUDE)
      file(STRINGS ${ONEDNN_INCLUDE}/oneapi/dnnl/dnnl_config.h ONEDNN_OPENMP
        REGEX "define DNNL_CPU_THREADING_RUNTIME DNNL_RUNTIME_OMP")
    endif()
  endif()
  if(ONEDNN_OPENMP)
    target_compile_definitions(capstan::onednn INTERFACE CAPSTAN_ONEDNN)
    target_include_directories(capstan::onednn INTERFACE ${ONEDNN_INCLUDE})
    target_link_libraries(capstan::onednn INTERFACE ${ONEDNN_LIBRARY})
  elseif(CAPSTAN_ONEDNN AND CMAKE_FIND_PACKAGE_NAME)
    list(APPEND CAPSTAN_MISSING "This Capstan was built with oneDNN: install the package libdnnl-dev")
  endif()
endif()
