"""The server that is attacked, and its runs."""
import atexit
import os
import random
import re
import resource
import signal
import subprocess
import sys

from client import ask, request, until

program = os.path.realpath(os.environ.get("CAPSTAN_PROGRAM", "build/release/capstan"))
slots, queue, idle, body_kb = 8, 8, 2, 64

config = """
name: {name}
data: {{type: text, train: [text.txt], sequence_length: 64, tokenizer: byte}}
model: {{type: language-model, width: 64, positions: none, layers: [{{mixer: {{type: {mixer}}}}}]}}
train: {{steps: 4, batch_size: 4, valid_every: 2, progress: none}}
"""


def prepare():
    draw = random.Random(1)
    with open("text.txt", "w") as out:
        out.write("".join("".join(draw.choices("etaoin shrdlu", k=60)) + "\n" for _ in range(400)))
    for name, mixer in (("aft", "aft-simple"), ("attention", "attention, heads: 4, rotary: true")):
        with open("run.yaml", "w") as out:
            out.write(config.format(name=name, mixer=mixer))
        done = subprocess.run([program, "train", "--config", "run.yaml"], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)


class Served:
    """A server of the runs, which does not outlive this program."""
    limits = ["--slots", str(slots), "--queue", str(queue), "--client-share", "1", "--idle", str(idle), "--max-tokens", "100000", "--drain", "5"]

    def __init__(self, options=None, files=None):
        """Without `options`, those of most attacks. `files`: how many it may have open."""
        if options is None:
            options = [*self.limits, "--max-body-kb", str(body_kb), "--cache-mb", str(body_kb // 64 + 8)]
        self.log = open("served", "w+")
        limit = (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))) if files else None
        self.process = subprocess.Popen([program, "serve", "runs/aft", "runs/attention", "--port", "0", *options], stderr=self.log,
                                        stdout=self.log, stdin=subprocess.DEVNULL, preexec_fn=limit)
        self.port = 0
        atexit.register(self.process.kill)
        if not until(self.find_port, 60):
            sys.exit("the server did not start:\n" + open("served").read())

    def find_port(self):
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", open("served").read())
        self.port = int(found[1]) if found else 0
        return self.port > 0 or self.process.poll() is not None

    def is_idle(self):
        """Whether each slot and place is free: a request that needs all of them is answered."""
        return ask(self.port, request({"prompt": "a", "n": slots + queue, "max_tokens": 1}))[0] == 200

    def resident_mb(self, what="VmRSS"):
        """VmHWM: the largest so far."""
        status = open(f"/proc/{self.process.pid}/status").read()
        return int(re.search(what + r":\s+(\d+) kB", status)[1]) / 1024

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def end(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
