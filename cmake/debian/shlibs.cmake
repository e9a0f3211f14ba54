# Run by cpack before it asks dpkg-shlibdeps: its answer for OpenBLAS would be the package libopenblas0, which any build of it
# satisfies. The program is linked to the OpenMP build.
file(WRITE "${CPACK_TEMPORARY_DIRECTORY}/debian/shlibs.local" "libopenblas 0 libopenblas0-openmp\n")
