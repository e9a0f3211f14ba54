# `cpack` in the folder of a portable build: capstan_VERSION_amd64.deb with the component `program`.
# scripts/package.sh does all of it. A native build makes no package: it would not run elsewhere.
if(CAPSTAN_NATIVE)
  return()
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME capstan)
set(CAPSTAN_MAINTAINER "The authors of Capstan <capstan@localhost>" CACHE STRING "Who answers for a Debian package: name <address>")
set(CPACK_PACKAGE_CONTACT ${CAPSTAN_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "train and compare attention-free and linear-cost text models")
set(CPACK_PACKAGE_DESCRIPTION "Language models and text classifiers on the CPU, described by a YAML file and
run from the command line: the Attention Free Transformer, Fastformer, GAU,
FLASH and a Transformer to compare them with. Training goes on after an
interruption as if there had been none.")
set(CPACK_INSTALL_CMAKE_PROJECTS ${CMAKE_BINARY_DIR} capstan program /)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Several machines need an MPI library, which only the plugin is linked to (cmake/debian/shlibs.cmake leaves it out).
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libopenmpi3, openmpi-bin")
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/debian/shlibs.cmake)
# What Debian asks of every package. scripts/package.sh writes the manual page.
install(FILES ${generated}/capstan.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program OPTIONAL)
configure_file(cmake/debian/changelog.in ${generated}/changelog @ONLY)
execute_process(COMMAND gzip -9 --no-name --force ${generated}/changelog)
install(FILES ${generated}/changelog.gz cmake/debian/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(FILES cmake/debian/lintian-overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides RENAME capstan COMPONENT program)
include(CPack)
