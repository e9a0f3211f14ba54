#!/bin/bash
# Training under a Slurm of one node that the test starts for itself (packages slurm-wlm, munge; as root): srun gives the
# bits of one process, and a job that is requeued saves and goes on.
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"

# What has been started ends with the case.
stop_slurm() {
  for daemon in slurmd slurmctld; do
    if [ ! -e "$daemon.pid" ]; then continue; fi
    local pid
    pid=$(<"$daemon.pid")
    kill "$pid" || continue
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done  # it writes into this folder to its end
  done
  if [ -n "${own_munged:-}" ]; then pkill -x munged || true; fi
}

# A Slurm in the current folder, of one node that says it has four cores.
start_slurm() {
  for program in slurmctld slurmd srun munged; do
    command -v "$program" >/dev/null || skip "there is no $program (packages slurm-wlm and munge)"
  done
  [ "$(id -u)" -eq 0 ] || skip "a Slurm of one's own needs root"
  [ -e /etc/munge/munge.key ] || skip "munge has no key: run mungekey"
  trap stop_slurm EXIT
  if ! pgrep -x munged >/dev/null; then
    install -d -o munge -g munge /run/munge
    runuser -u munge -- munged
    own_munged=yes
  fi
  local node
  node=$(hostname -s)
  mkdir state spool
  cat >slurm.conf <<END
ClusterName=one
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$PWD/state
SlurmdSpoolDir=$PWD/spool
SlurmctldPidFile=$PWD/slurmctld.pid
SlurmdPidFile=$PWD/slurmd.pid
SlurmctldLogFile=$PWD/slurmctld.log
SlurmdLogFile=$PWD/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
NodeName=$node NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
END
  export SLURM_CONF=$PWD/slurm.conf
  slurmctld -c
  slurmd
  for _ in $(seq 60); do
    if [ "$(sinfo -h -o %t 2>/dev/null)" = idle ]; then return; fi
    sleep 0.5
  done
  echo "the node did not become idle:"
  tail -n 5 slurmctld.log slurmd.log
  return 1
}

# A text, and runs of 300 steps.
write_config() {
  seq 1 60000 >text.txt
  cat >lm.yaml <<'END'
data: {type: text, train: [text.txt], valid_fraction: 0.05, sequence_length: 64, tokenizer: {type: byte}}
model: {type: language-model, width: 32, layers: [{mixer: {type: gau}, repeat: 2}]}
train: {steps: 300, batch_size: 8, lr: 1e-3, lanes: 8, valid_every: 100, save_every: 50, keep_optimizer: true, progress: none}
END
}

bits() {
  (cd "$(ls -d "runs/$1/checkpoints/step-"* | sort -V | tail -n 1)" && sha256sum model.safetensors optimizer.safetensors)
}

case_srun_and_requeue() {
  start_slurm
  write_config
  "$capstan" train --config lm.yaml --set name=alone
  bits alone >expected

  srun --mpi=pmix -n 3 "$capstan" train --config lm.yaml --set name=three
  bits three | diff - expected
  says "3 ranks by " runs/three/train.log

  # Requeued while it trains: SIGTERM, saved, and the same job goes on.
  cat >job.sh <<END
#!/bin/bash
srun --mpi=pmix "$capstan" train --config lm.yaml --set name=again
END
  sbatch -Q --requeue -n 2 --output=job.log --open-mode=append job.sh
  for _ in $(seq 300); do
    if [ -e runs/again/checkpoints/step-50 ]; then break; fi
    sleep 0.1
  done
  local job
  job=$(squeue -h -o %i)
  scontrol requeue "$job"
  for _ in $(seq 300); do
    if grep -q "interrupted by SIGTERM" runs/again/train.log; then break; fi
    sleep 0.1
  done
  says "interrupted by SIGTERM" runs/again/train.log
  scontrol update "JobId=$job" StartTime=now  # Slurm waits for two minutes otherwise
  for _ in $(seq 1800); do
    if grep -q "finished at step 300" runs/again/train.log; then break; fi
    sleep 0.1
  done
  bits again | diff - expected
  says "resumed from" runs/again/train.log
}

run_cases
