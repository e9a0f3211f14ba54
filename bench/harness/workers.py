"""Programs that answer one line per request: bench_models (Capstan) and bench/pytorch/worker.py, each in a process of its own."""

import json
import os
import resource
import select
import subprocess
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1]
# Settings of a BLAS or OpenMP that would make one side run as the other does not.
UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY", "OMP_PROC_BIND", "GOMP_SPINCOUNT",
         "GOMP_CPU_AFFINITY", "CAPSTAN_CPU", "CAPSTAN_RESTARTED", "LD_PRELOAD")
# glibc's malloc keeps what was freed instead of returning it to the system and faulting it in again at every step.
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(2**40), "MALLOC_MMAP_THRESHOLD_": str(2**40), "MALLOC_TOP_PAD_": str(2**26)}
TIMEOUT = 1800  # seconds; the first compilation of a model takes minutes
SHARE_OF_MEMORY = 0.8


class WorkerFailed(Exception):
    """The worker cannot do what it was asked for; the message is the reason."""


def available_bytes():
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(fields["MemAvailable"].split()[0]) * 1024


def limit_memory():
    """Runs out of memory by an error of its own instead of taking the machine with it."""
    limit = int(available_bytes() * SHARE_OF_MEMORY)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


class Worker:
    def __init__(self, name, command, environment):
        self.name = name
        self.errors = tempfile.TemporaryFile(mode="w+")
        try:
            self.process = subprocess.Popen([str(word) for word in command], env=environment, preexec_fn=limit_memory,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)
        except OSError as error:
            raise WorkerFailed(str(error)) from error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

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

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()


def environment(threads, **settings):
    kept = {name: value for name, value in os.environ.items() if name not in UNSET}
    return {**kept, "OMP_NUM_THREADS": str(threads), **settings}


def case_arguments(case, threads):
    fields = ("system", "work", "width", "layers", "batch", "length", "max_length")
    words = [word for field in fields for word in (f"--{field.replace('_', '-')}", getattr(case, field))]
    return words + ["--threads", threads]


def start_capstan(case, options, files=None):
    """files: weights and data that a twin has saved; None: Capstan's own."""
    source = ["--weights", files[0], "--data", files[1]] if files else []
    if case.weights == "bf16":
        source.append("--bf16")
    command = [options.program, "serve", *case_arguments(case, options.threads), "--micro", case.micro, *source]
    return Worker("Capstan", command, environment(options.threads))


def start_pytorch(form, case, options):
    """Always takes the whole batch at once."""
    command = [options.python, FOLDER / "pytorch" / "worker.py", "--form", form, *case_arguments(case, options.threads)]
    return Worker(form, command, environment(options.threads, **(KEEP_MEMORY if form == "tuned" else {})))
