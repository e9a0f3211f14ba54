"""One case: the same work by Capstan and by the forms of its PyTorch twin, checked against each other, then timed in turns."""

import math
import statistics
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.workers import WorkerFailed, start_capstan, start_pytorch

TOLERANCE = 1e-4          # relative, of loss and gradient norm on the same weights and data
TOLERANCE_UPDATED = 1e-3  # after updates, whose signs rounding may turn where a gradient is next to 0
TOLERANCE_BF16 = 2e-2
WARM_UP_UNITS = 2
SHORTEST_ROUND = 0.25     # seconds: shorter units are repeated


@dataclass
class Case:
    system: str
    work: str  # step, forward, both, decode
    width: int
    layers: int
    batch: int
    length: int
    max_length: int = 0
    micro: int = 0
    size: str = ""
    round_units: int = 0  # 0: as many as SHORTEST_ROUND takes
    weights: str = "float32"  # Capstan's in products: float32 or bf16; PyTorch's are float32 but for its form bf16


def spread(values):
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def disagreement(ours, theirs, tolerance):
    """What differs, in words; None when both are the same."""
    for key in ("loss", "grad_norm"):
        scale = max(abs(ours[key]), abs(theirs[key]), 1e-30)
        if not abs(ours[key] - theirs[key]) <= tolerance * scale:  # not: a NaN disagrees with everything
            return f"{key}: Capstan {ours[key]:.8g}, PyTorch {theirs[key]:.8g}"
    return None


class Side:
    """One worker and what it measured."""

    def __init__(self, worker, case):
        self.worker, self.case = worker, case
        self.first = worker.ask("check")
        self.seconds = []

    def warm_up(self):
        """Peak memory of the first units and the outcome behind them."""
        units = self.case.round_units or WARM_UP_UNITS
        self.worker.ask("memory")
        taken = self.worker.ask("round", units)["seconds"]
        if not self.case.round_units:
            taken = self.worker.ask("round", units)["seconds"]  # the first ones fill caches and compile
        self.peak = self.worker.ask("memory")["peak_bytes"]
        self.units = self.case.round_units or max(1, math.ceil(SHORTEST_ROUND * units / taken))
        self.updated = self.worker.ask("check") if self.case.work == "step" else self.first

    def round(self):
        self.seconds.append(self.worker.ask("round", self.units)["seconds"] / self.units)

    def result(self):
        return {"seconds": spread(self.seconds), "peak_bytes": self.peak, "check": self.first,
                "check_updated": self.updated, "units_per_round": self.units, "info": self.worker.ask("info")}


def start_form(form, case, options, capstan, stack):
    """A checked and warm Side. Raises WorkerFailed."""
    side = Side(stack.enter_context(start_pytorch(form, case, options)), case)
    bf16 = form.endswith("bf16") or case.weights == "bf16"
    problem = disagreement(capstan.first, side.first, TOLERANCE_BF16 if bf16 else TOLERANCE)
    if not problem:
        side.warm_up()
        problem = disagreement(capstan.updated, side.updated, TOLERANCE_BF16 if bf16 else TOLERANCE_UPDATED)
    if problem:
        raise WorkerFailed(f"DISAGREES, {problem}")
    return side


def save_files(case, options, folder):
    """Weights and data of the twin. Raises WorkerFailed."""
    files = (Path(folder) / "weights.safetensors", Path(folder) / "data.safetensors")
    with start_pytorch("eager", case, options) as worker:
        worker.ask("save", *files)
    return files


def measure(case, forms, options):
    """Everything about a case; forms that do not run have {"not_available": reason}."""
    result = {"case": asdict(case), "pytorch": {}}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        files = None
        try:
            files = save_files(case, options, folder) if forms else None
        except WorkerFailed as failure:
            result["pytorch"] = {form: {"not_available": str(failure)} for form in forms}
            forms = ()
        try:
            capstan = Side(stack.enter_context(start_capstan(case, options, files)), case)
            capstan.warm_up()
        except WorkerFailed as failure:
            return {**result, "capstan": {"not_available": str(failure)}}
        sides = {}
        for form in forms:
            try:
                sides[form] = start_form(form, case, options, capstan, stack)
            except WorkerFailed as failure:
                result["pytorch"][form] = {"not_available": str(failure)}
        rates = take_turns(capstan, sides, result, options.rounds)
        return finish(result, capstan, sides, rates)


def take_turns(capstan, sides, result, rounds):
    """Fills the sides' seconds; the sgemm rate around each of Capstan's rounds. A form that fails midway drops out."""
    rates = []
    for _ in range(rounds):
        before = capstan.worker.ask("sgemm")["flops_per_second"]
        capstan.round()
        rates.append((before + capstan.worker.ask("sgemm")["flops_per_second"]) / 2)
        for form, side in list(sides.items()):
            try:
                side.round()
            except WorkerFailed as failure:
                result["pytorch"][form] = {"not_available": str(failure)}
                del sides[form]
    return rates


def finish(result, capstan, sides, rates):
    ours = capstan.result()
    flops, tokens = ours["info"]["unit_flops"], ours["info"]["unit_tokens"]
    ours["sgemm_flops_per_second"] = spread(rates)
    ours["share_of_sgemm"] = spread([flops / seconds / rate for seconds, rate in zip(capstan.seconds, rates)])
    ours["tokens_per_second"] = tokens / ours["seconds"]["median"]
    for form, side in sides.items():
        theirs = side.result()
        theirs["over_capstan"] = spread([them / us for them, us in zip(side.seconds, capstan.seconds)])
        theirs["memory_over_capstan"] = theirs["peak_bytes"] / ours["peak_bytes"]
        result["pytorch"][form] = theirs
    return {**result, "capstan": ours}
