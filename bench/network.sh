#!/bin/bash
# Time in communication per training step of 2 and 4 ranks, each in a network namespace of its own, whose connection is held to a
# rate; beside the prediction of `capstan inspect`. On one machine: the ranks share its cores, the network alone is that of several.
#   bench/network.sh [CAPSTAN] [RATES in Mbit/s, such as "1000 100"] [STEPS]
# Needs root, iproute2 and Open MPI. Namespaces and the bridge between them are removed at the end.
set -euo pipefail
for program in mpirun ip tc; do
  command -v $program >/dev/null || { echo "skipped: there is no $program (packages openmpi-bin, iproute2)"; exit 0; }
done
[ "$(id -u)" = 0 ] || { echo "skipped: only root can make network namespaces"; exit 0; }
capstan=$(realpath "${1:-$(dirname "$0")/../build/release/capstan}")
rates=${2:-1000 100}
steps=${3:-12}
tag=cap$$
work=$(mktemp -d)
remove_network() {
  for i in 1 2 3 4; do ip netns del "$tag-$i" 2>/dev/null || true; done
  ip link del "$tag" 2>/dev/null || true
}
trap 'remove_network; rm -rf "$work"' EXIT
cd "$work"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# make_network RATE: addresses 10.77.0.1 to 4, the machine itself has 254.
make_network() {
  remove_network
  ip link add name "$tag" type bridge
  ip addr add 10.77.0.254/24 dev "$tag"
  ip link set "$tag" up
  for i in 1 2 3 4; do
    ip netns add "$tag-$i"
    ip link add "$tag.$i" type veth peer name eth0 netns "$tag-$i"
    ip link set "$tag.$i" master "$tag" up
    ip -n "$tag-$i" addr add "10.77.0.$i/24" dev eth0
    ip -n "$tag-$i" link set lo up
    ip -n "$tag-$i" link set eth0 up
    tc qdisc add dev "$tag.$i" root tbf rate "$1mbit" burst 256kb latency 50ms
    ip netns exec "$tag-$i" tc qdisc add dev eth0 root tbf rate "$1mbit" burst 256kb latency 50ms
  done
}
# In place of ssh: mpirun starts its daemon of a host in that host's namespace.
cat >agent <<END
#!/bin/bash
host=\$1
shift
export TMPDIR=$work/\$host  # daemons of one machine would share their folder
mkdir -p \$TMPDIR
exec ip netns exec "$tag-\${host##*.}" /bin/bash -c "\$*"
END
chmod +x agent
sent() { ip netns exec "$tag-1" cat /sys/class/net/eth0/statistics/tx_bytes; }

seq 1 100000 >text.txt
cat >run.yaml <<'END'
name: run
threads: 1
data: {type: text, train: [text.txt], sequence_length: 128, tokenizer: byte}
model:
  type: language-model
  width: 256
  max_length: 128
  layers: [{mixer: {type: aft-simple}, feed_forward: {type: gelu, expansion: 4}, repeat: 4}]
train: {steps: 12, batch_size: 8, lanes: 8, valid_every: 0, save_every: 0, progress: none}
END
echo '| ranks | rate, Mbit/s | sent per step: predicted, counted | gradients: predicted, measured | weights: predicted, measured |'
echo '|---|---|---|---|---|'
for rate in $rates; do
  make_network "$rate"
  for ranks in 2 4; do
    hosts=10.77.0.1
    for ((i = 2; i <= ranks; ++i)); do hosts+=,10.77.0.$i; done
    predicted=$("$capstan" inspect run.yaml --ranks $ranks --speed 5000 --bandwidth "$(awk "BEGIN {print $rate / 1000}")" --latency 30)
    job() { # STEPS NAME
      mpirun --host "$hosts" --mca plm_rsh_agent "$work/agent" --mca btl tcp,self --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include 10.77.0.0/24 \
        --bind-to none "$capstan" train --config run.yaml --profile $((steps - 4)) --set "train.steps=$1" "name=$2" >log 2>&1 ||
        { cat log >&2; exit 1; }
    }
    # What is sent besides steps is the same with fewer steps.
    before=$(sent)
    job "$steps" "long-$rate-$ranks"
    middle=$(sent)
    found() { sed -n "s/^$1  *[0-9]*  *\([0-9.]*\) .*/\1/p" log; }
    gradients=$(found 'gradients between ranks') weights=$(found 'weights between ranks')
    job $((steps / 2)) "short-$rate-$ranks"
    bytes=$(((middle - before - ($(sent) - middle)) / (steps - steps / 2)))
    time_of() { sed -n "s/^$1  *\([0-9.]* ms\) .*/\1/p" <<<"$predicted"; }
    sent_of() { sed -n "s/^$1 .* ms  *\([0-9.]*\) MB sent.*/\1/p" <<<"$predicted"; }
    echo "| $ranks | $rate | $(awk "BEGIN {print $(sent_of gradients) + $(sent_of weights)}") MB, $(awk "BEGIN {printf \"%.2f\", $bytes / 1e6}") MB |" \
      "$(time_of gradients), $gradients ms | $(time_of weights), $weights ms |"
  done
done
