"""What bench/timing.py lets take turns: programs that answer a line per request (bench_models, bench/pytorch/worker.py), and whole commands."""
import json
import os
import resource
import select
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Settings of a BLAS or OpenMP that would make one side run as the other does not.
UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY", "OMP_PROC_BIND", "GOMP_SPINCOUNT",
         "GOMP_CPU_AFFINITY", "CAPSTAN_CPU", "CAPSTAN_RESTARTED", "LD_PRELOAD")
# glibc's malloc keeps what was freed instead of returning it to the system and faulting it in again at every step.
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(2**40), "MALLOC_MMAP_THRESHOLD_": str(2**40), "MALLOC_TOP_PAD_": str(2**26)}
TIMEOUT = 1800  # seconds; the first compilation of a model takes minutes
SHARE_OF_MEMORY = 0.8
STEPS = 8  # of a run whose start is timed
LAYER = "{mixer: {type: aft-simple}, feed_forward: {type: gelu, expansion: 4}, repeat: 4}"
START = ["data.split=tail", "data.valid_fraction=0.05", "data.sequence_length=512", "data.tokenizer={type: byte}", "data.include=[]",
         "model.width=256", "model.max_length=512", "model.dropout=0", f"model.layers=[{LAYER}]", "train.batch_size=8",
         f"train.steps={STEPS}", "train.log_every=1", "train.valid_every=1000", "train.save_every=0", "train.progress=plain"]
DROP_CACHES = Path("/proc/sys/vm/drop_caches")


class WorkerFailed(Exception):
    """The worker cannot do what it was asked for; the message is the reason."""


def environment(threads=None, **settings):
    kept = {name: value for name, value in os.environ.items() if name not in UNSET}
    return {**kept, **({"OMP_NUM_THREADS": str(threads)} if threads else {}), **settings}


def limit_memory():
    """Runs out of memory by an error of its own instead of taking the machine with it."""
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    limit = int(int(fields["MemAvailable"].split()[0]) * 1024 * SHARE_OF_MEMORY)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


class Worker:
    def __init__(self, command, environment):
        self.errors = tempfile.TemporaryFile(mode="w+")
        try:
            self.process = subprocess.Popen([str(word) for word in command], env=environment, preexec_fn=limit_memory,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)
        except OSError as error:
            raise WorkerFailed(str(error)) from error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        self.errors.close()

    def ask(self, *request):
        """The answer, a dictionary. Raises WorkerFailed for an answer {"error"} and when there is none."""
        try:
            self.process.stdin.write((" ".join(str(word) for word in request) + "\n").encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            self.fail()
        if not select.select([self.process.stdout], [], [], TIMEOUT)[0]:
            raise WorkerFailed(f"no answer to '{request[0]}' within {TIMEOUT} s")
        line = self.process.stdout.readline()
        if not line:
            self.fail()
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerFailed(answer["error"])
        return answer

    def fail(self):
        status = self.process.wait()
        self.errors.seek(0)
        last_words = self.errors.read().strip().splitlines()[-1:] or ["no message"]
        raise WorkerFailed(f"ended with status {status}: {last_words[0]}")

    def seconds(self, units):
        return self.ask("round", units)["seconds"]

    def cpu_seconds(self):
        """Of all threads, in nanoseconds' resolution: a round of decoding is shorter than ten of the clock's ticks."""
        threads = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


class Command:
    """A command that is run anew in each round."""

    def __init__(self, program):
        self.program = program

    def cpu_seconds(self):
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime


class Start(Command):
    """What a run's first step takes beyond a steady one."""

    def seconds(self, _):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "text").write_text("the tape turns a drum and wire runs out\n" * 25_000)
            command = [self.program, "train", "--config", ROOT / "configs/lm-aft-simple.yaml", "--set", f"folder={folder}", "name=run",
                       f"data.train=[{folder}/text]", *START]
            begin, ends = time.perf_counter(), []
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment()) as process:
                for line in process.stdout:
                    if "] Step " in line:
                        ends.append(time.perf_counter() - begin)
        if process.returncode != 0 or len(ends) < STEPS:
            raise WorkerFailed(f"exit code {process.returncode} after {len(ends)} steps: {line}")
        return ends[0] - statistics.median(b - a for a, b in zip(ends[1:STEPS], ends[2:STEPS]))


class Label(Command):
    """The label of a text by `capstan predict RUN`; cold: after the system has forgotten all files, for root alone."""

    def __init__(self, program, run, cold):
        super().__init__(program)
        self.run, self.cold = run, cold

    def seconds(self, _):
        if self.cold:
            os.sync()
            DROP_CACHES.write_text("3")
        begin = time.perf_counter()
        done = subprocess.run([self.program, "predict", self.run], input="where is the highest mountain\n", capture_output=True, text=True,
                              env=environment())
        if done.returncode != 0:
            raise WorkerFailed(done.stderr)
        return time.perf_counter() - begin
