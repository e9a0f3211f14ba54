"""Results as Markdown."""

from harness.machine import is_busy


def available(part):
    return part is not None and "not_available" not in part


def interval(values, scale=1.0, digits=2):
    return f"{scale * values['median']:.{digits}f} [{scale * values['low']:.{digits}f}, {scale * values['high']:.{digits}f}]"


def megabytes(part):
    return f"{part['peak_bytes'] / 1e6:.0f}"


class Notes:
    """Reasons that are too long for a cell; equal ones share a number."""

    def __init__(self):
        self.reasons = []

    def cell(self, part):
        if part is None:
            return "not asked for"
        if part["not_available"] not in self.reasons:
            self.reasons.append(part["not_available"])
        return f"not available here ({self.reasons.index(part['not_available']) + 1})"

    def lines(self):
        return [f"({number}) {reason}" for number, reason in enumerate(self.reasons, start=1)]


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines]


def first_info(results, part):
    found = (part(result) for result in results)
    return next((piece["info"] for piece in found if available(piece)), None)


def head(facts, results, forms):
    ours = first_info(results, lambda result: result.get("capstan"))
    lines = [f"{facts['date']}, {facts['cpu']} ({', '.join(facts['instructions'])}), {facts['cpus']} CPUs, "
             f"{facts['memory_gb']} GB, Linux {facts['kernel']}, commit {facts['commit']}."]
    if is_busy(facts):
        lines += ["", f"**Not for publication:** the machine was busy with other work (load {facts['load_at_start']:.1f})."]
    if ours:
        rates = [result["capstan"]["sgemm_flops_per_second"]["median"] for result in results if available(result["capstan"])]
        lines += [f"Capstan: {ours['compiler']}, float products by {ours['float_products']}, {ours['blas']} ({ours['blas_core']} "
                  f"kernels, {ours['blas_threading']} threading), "
                  f"{ours['threads']} threads, sgemm 2048³ at {min(rates) / 1e9:.0f} to {max(rates) / 1e9:.0f} GFLOP/s "
                  "(medians of the cases)."]
    for form in forms:
        theirs = first_info(results, lambda result: result["pytorch"].get(form))
        if theirs:
            lines += [f"PyTorch {theirs['torch']}, Python {theirs['python']}, BLAS {theirs['blas']}, {theirs['cpu_capability']}, "
                      f"{theirs['threads']} threads."]
            break
    return lines


def steps(results, forms):
    """Whole training steps. Medians of interleaved rounds, [lowest, highest]."""
    notes = Notes()
    header = ["system", "size", "ms", "tokens/s", "share of sgemm", "tokens/s over attention", "peak MB"]
    header += [f"{form} ÷ Capstan" for form in forms] + ["peak ÷ eager's"] * ("eager" in forms)
    baseline = {result["case"]["size"]: result["capstan"]["tokens_per_second"] for result in results
                if result["case"]["system"] == "attention" and available(result["capstan"])}
    rows = []
    for result in results:
        case, ours = result["case"], result["capstan"]
        row = [case["system"], case["size"]]
        if not available(ours):
            rows.append(row + [notes.cell(ours)] + [""] * (len(header) - 3))
            continue
        rate = ours["tokens_per_second"]
        row += [interval(ours["seconds"], 1e3, 1), f"{rate:,.0f}", interval(ours["share_of_sgemm"]),
                f"{rate / baseline[case['size']]:.2f}" if case["size"] in baseline else "", megabytes(ours)]
        for form in forms:
            theirs = result["pytorch"].get(form)
            row.append(interval(theirs["over_capstan"]) if available(theirs) else notes.cell(theirs))
        if "eager" in forms:
            eager = result["pytorch"]["eager"]
            row.append(f"{1 / eager['memory_over_capstan']:.2f}" if available(eager) else "")
        rows.append(row)
    return table(header, rows) + [""] + notes.lines()


def decode(results, forms):
    """One token at a time; PyTorch's weights are float32. Medians of interleaved rounds, [lowest, highest]."""
    notes = Notes()
    header = ["system", "size", "weights", "µs/token", "tokens/s", "÷ one reading of the weights"]
    header += [f"{form} ÷ Capstan" for form in forms]
    rows = []
    for result in results:
        case, ours = result["case"], result["capstan"]
        row = [case["system"], case["size"], case["weights"]]
        if not available(ours):
            rows.append(row + [notes.cell(ours)] + [""] * (len(header) - 4))
            continue
        over_reading = ours["seconds"]["median"] / ours["info"]["weights_read_seconds"]
        row += [interval(ours["seconds"], 1e6, 0), f"{ours['tokens_per_second']:,.0f}", f"{over_reading:.2f}"]
        for form in forms:
            theirs = result["pytorch"].get(form)
            row.append(interval(theirs["over_capstan"]) if available(theirs) else notes.cell(theirs))
        rows.append(row)
    return table(header, rows) + [""] + notes.lines()


def length(results, forms):
    """Blocks over length: Capstan's µs per token, in brackets each form's time over Capstan's. Medians of interleaved rounds."""
    notes = Notes()
    lengths = sorted({result["case"]["length"] for result in results})
    rows = {}
    for result in results:
        case, ours = result["case"], result["capstan"]
        cells = rows.setdefault((case["system"], case["work"]), dict.fromkeys(lengths, ""))
        if not available(ours):
            cells[case["length"]] = notes.cell(ours)
            continue
        theirs = [result["pytorch"].get(form) for form in forms]
        ratios = [f"{part['over_capstan']['median']:.2f}" if available(part) else notes.cell(part) for part in theirs]
        micros = f"{1e6 / ours['tokens_per_second']:.3f}"
        cells[case["length"]] = f"{micros} ({'; '.join(ratios)})" if ratios else micros
    passes = {"forward": "forward", "both": "forward and backward"}
    body = [[system, passes[work], *cells.values()] for (system, work), cells in rows.items()]
    return table(["system", "pass"] + [f"T = {length}" for length in lengths], body) + [""] + notes.lines()


def memory(results, forms):
    """Peak resident memory of a training step; PyTorch always takes the whole batch at once."""
    notes = Notes()
    header = ["system", "size", "micro-batch", "peak MB"] + [cell for form in forms for cell in (f"{form} MB", f"÷ {form}'s")]
    rows = []
    for result in results:
        case, ours = result["case"], result["capstan"]
        row = [case["system"], case["size"], f"{case['micro']} tokens" if case["micro"] else "whole batch"]
        if not available(ours):
            rows.append(row + [notes.cell(ours)] + [""] * (len(header) - 4))
            continue
        row.append(megabytes(ours))
        for form in forms:
            theirs = result["pytorch"].get(form)
            row += ([megabytes(theirs), f"{1 / theirs['memory_over_capstan']:.2f}"] if available(theirs)
                    else [notes.cell(theirs), ""])
        rows.append(row)
    return table(header, rows) + [""] + notes.lines()


LAYOUTS = {"steps": steps, "decode": decode, "length": length, "memory": memory}


def markdown(name, facts, command, results, forms):
    text = [f"# {name}", "", LAYOUTS[name].__doc__, "", f"`{command}`", ""]
    return "\n".join(text + head(facts, results, forms) + [""] + LAYOUTS[name](results, forms)).rstrip() + "\n"
