"""One client asks for more than its share: of memory, of connections, of time. Each phase has a server of its own."""
import json
import signal
import statistics
import threading
import time

from client import ask, connect, fail, get, request, until
from server import Served

prompt = "the tape turns a drum " * 740  # 16 kB
scored = {"prompt": prompt, "echo": True, "logprobs": 20, "max_tokens": 0}
beside = {"prompt": "a", "max_tokens": 8}
other = "127.0.0.2"  # another client's address
max_answer_mb, max_body_mb, max_delay, max_end = 900, 250, 1.0, 8


def answered(server, count=20, address=other, path="/health"):
    """How many of `count` requests are answered with 200, each on a connection of its own, and the slowest in seconds."""
    good, slowest = 0, 0.0
    for _ in range(count):
        begin = time.perf_counter()
        try:
            good += ask(server.port, get(path), 3.0, address)[0] == 200
        except OSError:
            pass
        slowest = max(slowest, time.perf_counter() - begin)
    return good, slowest


def answers(server, seed, rounds):
    """The largest answers that 16 kB can ask for: one request, then 20 at once that are each within the limit."""
    own = Served(["--queue", "256"])
    begin = time.time()
    status, said = ask(own.port, request({**scored, "n": 128}), 300)
    first = f"n=128: {status}, {len(said) / 1e6:.1f} MB in {time.time() - begin:.1f} s, peak {own.resident_mb('VmHWM'):.0f} MB"
    if status != 400 or any(field not in said.decode() for field in ("n,", "logprobs", "echo")):
        fail(f"one answer of any size: {status} {said[:200]}")
    statuses = []

    def one():
        statuses.append(ask(own.port, request({**scored, "n": 4}), 300)[0])

    threads = [threading.Thread(target=one) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    peak, left = own.resident_mb("VmHWM"), own.resident_mb()
    own.end()
    if peak > max_answer_mb or set(statuses) - {200, 429}:
        fail(f"20 large answers at once: {sorted(statuses)}, peak {peak:.0f} MB")
    return f"{first}; 20 of n=4: {statuses.count(200)} answered, the others 429; peak {peak:.0f} MB, {left:.0f} MB after"


def events(server, seed, rounds):
    """A stream that begins with more than 4 MB: refused in words, and smaller ones come whole."""
    own, found = Served([]), []
    for length, n in ((len(prompt), 1), (1000, 16), (3000, 1)):
        body = {**scored, "prompt": prompt[:length], "n": n, "max_tokens": 2, "stream": True}
        try:
            status, said = ask(own.port, request(body), 60)
        except (OSError, ValueError):
            status, said = 0, b""
        whole = status == 200 and said.endswith(b"data: [DONE]\n\n")
        found.append(f"{length} bytes, n={n}: {status}, {len(said) / 1e6:.1f} MB")
        if not whole and (status != 400 or json.loads(said)["error"]["param"] != "echo"):
            fail(f"a stream that begins with a long prompt: {found[-1]}")
    own.end()
    return "; ".join(found)


def begun(own, count, size, sent, address="127.0.0.1"):
    """`count` connections of which each sends a head, and a part of a body of `size` bytes."""
    clients = []
    for _ in range(count):
        try:
            client = connect(own.port, 5.0, address)
            client.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n".encode() + b" " * sent)
            clients.append(client)
        except OSError:
            pass  # it has made room for another
    return clients


def bodies(server, seed, rounds):
    """More connections than there is room for, that each send a head and a part of a body: others are answered."""
    said = []
    for files, count in ((None, 2100), (128, 120)):
        own = Served([], files)
        clients = begun(own, count, 1000, 10)
        time.sleep(0.5)
        good, slowest = answered(own)
        same, _ = answered(own, address="127.0.0.1")
        said.append(f"{count} bodies begun{f', {files} files' if files else ''}: {good} of 20 others answered, the slowest in {slowest:.2f} s, "
                    f"{same} of 20 with the same address")
        if good < 20 or same < 20:
            fail(said[-1])
        for client in clients:
            client.close()
        own.end()
    return "; ".join(said)


def megabytes(server, seed, rounds):
    """600 bodies of 1 MB that lack a byte."""
    own = Served([])
    before = own.resident_mb()
    clients = begun(own, 600, 1 << 20, (1 << 20) - 1)
    until(lambda: own.resident_mb() - before > 580, 20)  # it may read slowly
    grown = own.resident_mb("VmHWM") - before
    whole = ask(own.port, request({"prompt": "a" * 1000, "max_tokens": 1}), 10, other)[0]
    good, slowest = answered(own)
    for client in clients:
        client.close()
    own.end()
    if grown > max_body_mb or good < 20 or whole != 200:
        fail(f"600 bodies of 1 MB take {grown:.0f} MB; {good} of 20 others are answered, a completion with {whole}")
    return f"{grown:.0f} MB more; {good} of 20 others answered, the slowest in {slowest:.2f} s"


def readers(server, seed, rounds):
    """More connections than there is room for, whose answers nobody reads: others are answered."""
    own = Served([], 128)
    body, clients = request({"prompt": prompt[:8000]}, "/tokenize"), []
    for _ in range(120):
        try:
            client = connect(own.port, 5.0)
            client.sendall(body * 40)
            clients.append(client)
        except OSError:
            pass
    time.sleep(2)
    good, slowest = answered(own)
    for client in clients:
        client.close()
    own.end()
    if good < 20:
        fail(f"beside 120 clients that read nothing, {good} of 20 others are answered")
    return f"120 clients; {good} of 20 others answered, the slowest in {slowest:.2f} s"


def turns(server, seed, rounds):
    """60 of the largest requests at once from one client: how long does a completion of another take?"""
    own, said = Served([]), []
    numbers = "[" + ",".join("1" for _ in range(500_000)) + "]"
    kinds = {"/tokenize": request({"prompt": "a b " * 250_000}, "/tokenize"),
             "/detokenize": request(f'{{"model":"aft","tokens":{numbers}}}'.encode(), "/detokenize"),
             "large JSON": request(f'{{"model":"aft","prompt":{numbers}}}'.encode())}
    for name, whole in kinds.items():
        begin = time.perf_counter()
        ask(own.port, whole)
        one, alone, times = time.perf_counter() - begin, [], []
        senders = [threading.Thread(target=ask, args=(own.port, whole, 120)) for _ in range(60)]
        for which in (alone, times):
            if which is times:
                for sender in senders:
                    sender.start()
            while len(which) < 5 or (which is times and any(sender.is_alive() for sender in senders)):
                begin = time.perf_counter()
                status, _ = ask(own.port, request(beside), 120, other)
                which.append(time.perf_counter() - begin)
                if status != 200:
                    fail(f"beside 60 of {name}, a completion has status {status}")
        for sender in senders:
            sender.join()
        said.append(f"{name}: {1000 * one:.0f} ms for one; a completion {1000 * statistics.median(alone):.0f} ms alone, beside 60 "
                    f"{1000 * statistics.median(times):.0f} (median), {1000 * max(times):.0f} (max of {len(times)})")
        if max(times) > max_delay + 2 * one:
            fail("delayed: " + said[-1])
    own.end()
    return "; ".join(said)


def ending(server, seed, rounds):
    """SIGTERM while a client has sent half of a body, and another a part of a head: the server ends."""
    own = Served([])
    half, head = begun(own, 1, 1000, 500), connect(own.port)
    head.sendall(b"GET /hea")
    time.sleep(0.3)
    begin = time.time()
    own.process.send_signal(signal.SIGTERM)
    own.process.wait(60)
    seconds = time.time() - begin
    try:
        told = half[0].recv(1000).split(b"\r\n")[0].decode()
    except OSError:
        told = "nothing"
    head.close()
    if seconds > max_end or own.process.returncode != 0:
        fail(f"after SIGTERM the server waited {seconds:.1f} s for half of a body; exit code {own.process.returncode}")
    return f"ended {seconds:.1f} s after SIGTERM; the client with half of a body was told {told}"
