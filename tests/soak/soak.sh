#!/bin/bash
# Runs the soak on a fabric of its own and sees to it that nothing of it is left behind.
#
# usage: soak.sh PROGRAM DROPIN [OPTION-OF-THE-PROGRAM...]
set -euo pipefail

program=$1
LD_LIBRARY_PATH=$(cd "$(dirname "$2")" && pwd)
shift 2
SIMHCA_FABRIC=soak-$(od -An -N6 -tx1 /dev/urandom | tr -d ' ')
export LD_LIBRARY_PATH SIMHCA_FABRIC

"$program" "$@"

left=$(find /dev/shm -maxdepth 1 -name "*$SIMHCA_FABRIC*")
if [[ -n $left ]]; then
  echo "left behind: $left"
  exit 1
fi
echo "nothing is left in /dev/shm"
