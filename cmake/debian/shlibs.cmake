# Run by cpack before it asks dpkg-shlibdeps: its answer for OpenBLAS would be the package libopenblas0, which any build of it
# satisfies. The program is linked to the OpenMP build.
# Only the plugin libcapstan_mpi.so needs an MPI library, and most users do not need the plugin: no dependency.
file(WRITE "${CPACK_TEMPORARY_DIRECTORY}/debian/shlibs.local"
  "libopenblas 0 libopenblas0-openmp\nlibmpi 40\nlibmpi_cxx 40\nlibmpich 12\nlibmpichcxx 12\n")
