#!/bin/bash
# Random ranks are killed, with Open MPI and with MPICH, whichever are installed. For the latter the plugin is compiled here.
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"

signals=${CAPSTAN_ATTACK_COUNT:-14}

case_open_mpi() {
  command -v mpirun.openmpi >mpirun || skip "there is no Open MPI (package openmpi-bin)"
  CAPSTAN_PROGRAM=$capstan CAPSTAN_MPIRUN=$(<mpirun) "$source/scripts/attack/ranks.sh" "$signals" 3
}

case_mpich() {
  command -v mpicxx.mpich >compiler && command -v mpirun.mpich >mpirun || skip "there is no MPICH (packages mpich, libmpich-dev)"
  mpicxx.mpich -std=c++17 -O2 -Wall -Wextra -Werror -DMPICH_SKIP_MPICXX -fPIC -shared -fvisibility=hidden -I"$source" \
    "$source/train/ranks/mpi/mpi_transport.cpp" -o libcapstan_mpi.so
  CAPSTAN_PROGRAM=$capstan CAPSTAN_MPIRUN=$(<mpirun) CAPSTAN_MPI_PLUGIN=$PWD/libcapstan_mpi.so \
    "$source/scripts/attack/ranks.sh" "$signals" 4
}

run_cases
