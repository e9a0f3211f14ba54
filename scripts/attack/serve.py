#!/usr/bin/env python3
"""Attacks `capstan serve` as bad clients do, while a probe asks /health every 50 ms.

  scripts/attack/serve.py [ROUNDS] [SEED] [PHASE ...]     ROUNDS (2) of all phases, or of those with these names; 10,000 malformed
                                                           requests in all

A probe asks a trivial server at the same moments: what that takes is the machine's doing. No answer of /health may take more than 100 ms
above it. After all phases each slot and place must be free, resident memory as it was after the first round, and the server must end
in order. CAPSTAN_PROGRAM names another build of the program. The exit code is 0 when nothing failed.
"""
import atexit
import json
import multiprocessing
import os
import random
import re
import resource
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

program = os.path.realpath(os.environ.get("CAPSTAN_PROGRAM", "build/release/capstan"))
slots, queue, idle, body_kb = 8, 8, 2, 64
malformed_count, idle_count, most_growth_mb, limit_ms = 10_000, 1_000, 24, 100

config = """
name: {name}
data: {{type: text, train: [text.txt], sequence_length: 64, tokenizer: byte}}
model: {{type: language-model, width: 64, positions: none, layers: [{{mixer: {{type: {mixer}}}}}]}}
train: {{steps: 4, batch_size: 4, valid_every: 2, progress: none}}
"""
failures = []


def fail(what):
    failures.append(what)
    print("  FAILED: " + what, flush=True)


def connect(port, timeout=30.0):
    return socket.create_connection(("127.0.0.1", port), timeout)


def reset(client):
    """Ends the connection by RST."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def request(body, path="/v1/completions", method="POST"):
    data = body if isinstance(body, bytes) else json.dumps({"model": "aft", **body}).encode()
    return f"{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


def answer(stream):
    """(status, body) of one answer; status 0 at the end."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return 0, b""
    length = chunked = None
    while (field := stream.readline().strip().lower()) != b"":
        length = int(field.split()[1]) if field.startswith(b"content-length") else length
        chunked = chunked or field.startswith(b"transfer-encoding")
    body = b""
    if chunked:
        while (size := int(stream.readline() or b"0", 16)) > 0:
            body += stream.read(size + 2)[:-2]
        stream.readline()
    elif length is not None:
        body = stream.read(length)
        if len(body) < length:
            raise ConnectionError("cut answer")
    return int(line.split()[1]), body


def ask(port, bytes_sent, timeout=60.0):
    with connect(port, timeout) as client:
        client.sendall(bytes_sent)
        return answer(client.makefile("rb"))


def until(condition, seconds=20):
    end = time.time() + seconds
    while not condition():
        if time.time() > end:
            return False
        time.sleep(0.05)
    return True


class Served:
    """The server, which does not outlive this program."""

    def __init__(self, most_kb=body_kb):
        command = [program, "serve", "runs/aft", "runs/attention", "--port", "0", "--slots", str(slots), "--queue", str(queue),
                   "--client-share", "1", "--idle", str(idle), "--max-body-kb", str(most_kb), "--max-tokens", "100000",
                   "--cache-mb", str(most_kb // 64 + 8), "--drain", "5"]
        self.log = open("served", "w+")
        self.process = subprocess.Popen(command, stderr=self.log, stdout=self.log, stdin=subprocess.DEVNULL)
        self.port = 0
        atexit.register(self.process.kill)
        if not until(self.find_port):
            sys.exit("the server did not start:\n" + open("served").read())

    def find_port(self):
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", open("served").read())
        self.port = int(found[1]) if found else 0
        return self.port > 0 or self.process.poll() is not None

    def gauges(self):
        text = ask(self.port, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")[1].decode()
        return sum(int(x) for x in re.findall(r"capstan_num_requests_(?:running|waiting)\{.*?\} (\d+)", text))

    def resident_mb(self):
        return int(open(f"/proc/{self.process.pid}/statm").read().split()[1]) * resource.getpagesize() / 1e6


def probe(port, plain_port, stop, results):
    """Asks both servers every 50 ms on new connections; in a process of its own, which the attackers do not hold up."""
    found = []
    while not stop.is_set():
        both = []
        for at in (port, plain_port):
            begin = time.perf_counter()
            try:
                status, _ = ask(at, b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n", 10.0)
            except OSError:
                status = 0
            both.append(1000 * (time.perf_counter() - begin) if status == 200 else float("inf"))
        found.append(both)
        time.sleep(max(0.0, 0.05 - sum(both) / 1000) if sum(both) < 50 else 0)
    results.put(found)


def plain(listening):
    while True:
        client, _ = listening.accept()
        client.recv(1000)
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        client.close()


def together(count, body):
    """body(i) for i < count, on 8 threads; the number of calls that raised something else than an end of connection."""
    numbers, errors = iter(range(count)), []
    lock = threading.Lock()

    def work():
        while True:
            with lock:
                i = next(numbers, None)
            if i is None:
                return
            try:
                body(i)
            except (ConnectionError, BrokenPipeError):
                pass
            except Exception as error:  # noqa: BLE001: whatever it is, it is told
                errors.append(repr(error))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        fail(f"{len(errors)} of {count}: {errors[0]}")


knobs = ["model", "prompt", "max_tokens", "n", "best_of", "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "seed", "stop",
         "stream", "stream_options", "logprobs", "echo", "session", "user", "suffix", "logit_bias", "input", "tokens", "other"]
values = [None, True, False, 0, 1, 2, 7, -1, 0.5, 1e300, -1e-300, 2**63 - 1, 2**63, -2**63, 2**64, "", "a", "aft", "attention", "\0", "\ud800", "x" * 5000,
          [], {}, [[]], [""], [1, 2], [[1], [2]], [255], [256], [-1], ["a", 1], [None], {"keep": "a"}, {"from": "a"}, {"from": "zz"},
          {"include_usage": True}, {"keep": 1}, [[[[]]]]]
endless = {"prompt": "the tape", "max_tokens": 100000, "stream": True}


def vanish(server, seed, rounds):
    """In mid-request, in mid-stream, while waiting; by FIN or RST."""
    def one(i):
        draw = random.Random(seed * 1000 + i)
        whole = request(endless if i % 3 else {"prompt": "a" * 2000, "max_tokens": 50000})
        client = connect(server.port)
        client.sendall(whole if i % 2 else whole[:draw.randrange(len(whole))])
        if i % 4 == 1 and i % 3:
            client.recv(1 + draw.randrange(3000))
        time.sleep(draw.random() * 0.05)
        reset(client) if draw.random() < 0.5 else client.close()

    together(300, one)
    return "300 clients"


def trickle(server, seed, rounds):
    """One byte at a time: the connection must end in the idle time, whatever trickles."""
    late = []

    def one(i):
        client, begin = connect(server.port), time.time()
        whole = request({"prompt": "a" * 200}) if i % 2 else b"GET /health HTTP/1.1\r\nX: " + b"x" * 300
        try:
            for byte in whole:
                client.sendall(bytes([byte]))
                time.sleep(0.05)
        except OSError:
            pass
        if time.time() - begin > idle + 1.5:
            late.append(time.time() - begin)
        client.close()

    together(16, one)
    if late:
        fail(f"{len(late)} of 16 trickled for {max(late):.1f} s")
    return "16 clients"


def pipeline(server, seed, rounds):
    """Twenty requests in one write are answered in order."""
    def one(i):
        client = connect(server.port)
        parts = [request({"prompt": "a", "max_tokens": 1, "seed": k}) if k % 2 else b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
                 for k in range(20)]
        client.sendall(b"".join(parts))
        stream = client.makefile("rb")
        for k in range(20):
            status, body = answer(stream)
            said = json.loads(body)
            if status == 429:
                continue
            if status != 200 or (said.get("seed") != k if k % 2 else said != {"status": "ok"}):
                fail(f"pipelined request {k}: {status} {body[:80]}")
        client.close()

    together(16, one)
    return "320 requests"


def damaged(draw, valid):
    """Random changes, half of the time of the body alone, whose size the header then says; and values of all kinds in JSON."""
    head, end, body = (whole := draw.choice(valid)).partition(b"\r\n\r\n")
    if not body or draw.random() < 0.5:
        return changed(draw, whole)
    if draw.random() < 0.5 and body.startswith(b"{"):
        fields = json.loads(body)
        for _ in range(draw.randint(1, 2)):
            fields[draw.choice(knobs)] = draw.choice(values)
        body = json.dumps(fields).encode()
    else:
        body = changed(draw, body)
    return re.sub(rb"Content-Length: \d+", b"Content-Length: %d" % len(body), head) + end + body


def changed(draw, bytes_given):
    data = bytearray(bytes_given)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(data)) if data else 0
        kind = draw.randrange(5)
        if kind == 0:
            data[at:at + 1] = bytes([draw.randrange(256)])
        elif kind == 1:
            del data[at:at + draw.randint(1, 8)]
        elif kind == 2:
            data[at:at] = bytes([draw.choice(b'{["9:-,}\\%/')]) * draw.randint(1, 30)
        elif kind == 3:
            begin = draw.randrange(len(data) + 1)
            data[at:at] = data[begin:begin + draw.randint(1, 40)]
        else:
            data[at:at] = draw.choice([b"\0", b"\r\n", b"\xff", b"1e999", b"null", b"\\ud800", b"18446744073709551616", b"-1"])
    return bytes(data)


def malformed(server, seed, rounds):
    """Random changes of valid requests. An answer is HTTP with JSON; none has status 500."""
    count, statuses, lock = malformed_count // rounds, {}, threading.Lock()
    valid = [request({"prompt": "the", "max_tokens": 2, "n": 2, "stop": ["a"], "logprobs": 2, "echo": True, "seed": 1}),
             request({"prompt": [1, 2], "max_tokens": 1, "stream": True, "session": {"keep": "a"}}),
             request({"prompt": [[1], [2, 3]], "max_tokens": 1, "temperature": 0.5, "top_p": 0.9, "top_k": 3, "min_p": 0.1}),
             request({"input": ["the"], "encoding_format": "base64"}, "/v1/embeddings"),
             request({"tokens": [1, 2, 3]}, "/detokenize"), request(b"", "/v1/models/aft/sessions/a", "GET"),
             request(ask(server.port, request(b"", "/v1/models/aft/sessions/s", "GET"))[1], "/v1/models/aft/sessions/b", "PUT"),
             b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET /v1/models/aft HTTP/1.1\r\nHost: a\r\n\r\n",
             b"POST /tokenize HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1e\r\n{\"prompt\":\"a b\",\"model\":\"aft\"}\r\n0\r\n\r\n"]

    for whole in valid:
        if (said := ask(server.port, whole))[0] != 200:
            fail(f"{said} for {whole!r}")

    def one(i):
        draw = random.Random(seed * 100_000 + i)
        data, status = damaged(draw, valid), 0
        with connect(server.port) as client:
            client.sendall(data)
            if draw.random() < 0.2:
                return
            head, end, body = data.partition(b"\r\n\r\n")
            size = re.search(rb"\r\nContent-Length: (\d+)", head)
            if not end or int(size[1] if size else 0) != len(body):
                client.shutdown(socket.SHUT_WR)  # no more comes; of a whole request it would mean that the client has left
            try:
                status, body = answer(client.makefile("rb"))
            except (ConnectionError, ValueError):
                status = 0
        if status >= 400 and status != 429 and not data.startswith(b"HEAD") and "error" not in json.loads(body or b"{}"):
            fail(f"no error object: {status} {body[:80]} for {data!r}")
        if status >= 500:
            fail(f"status {status} {body[:200]} for {data!r}")
        with lock:
            statuses[status] = statuses.get(status, 0) + 1

    together(count, one)
    return f"{count} requests; answers by status (0: none): " + ", ".join(f"{k}: {v}" for k, v in sorted(statuses.items()))


def chunks(server, seed, rounds):
    """Bodies without a size that exceed the limit: 413, and no more is taken than is needed to say so."""
    seen = []

    def one(i):
        client, sent = connect(server.port), 0
        client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
        try:
            while sent < 64 << 20:
                client.sendall(chunk)
                sent += len(chunk)
        except OSError:
            pass
        try:
            seen.append((answer(client.makefile("rb"))[0], sent))
        except OSError:
            seen.append((0, sent))  # it went on for so long that the server closed the connection
        client.close()

    together(40, one)
    if any(status not in (0, 413) or sent >= 64 << 20 for status, sent in seen):
        fail(f"chunked bodies: {seen}")
    return f"40 bodies of 64 MB; at most {max(sent for _, sent in seen) / 1e6:.1f} MB were taken"


def slow(server, seed, rounds):
    """Streams that nobody reads in all slots but one: the others are served, the slow ones are dropped."""
    clients = []
    for _ in range(slots - 1):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        client.sendall(request({**endless, "logprobs": 20}))
        clients.append(client)
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        if ask(server.port, request({"prompt": "a", "max_tokens": 4}))[0] != 200:
            fail("a request beside slow readers was refused")
        times.append(1000 * (time.perf_counter() - begin))
    if not until(lambda: server.gauges() == 0, 120):
        fail(f"{server.gauges()} streams that nobody reads still run")
    for client in clients:
        client.close()
    return f"{slots - 1} streams; beside them, 4 tokens take {statistics.median(times):.0f} ms (median), {max(times):.0f} (max)"


def idlers(server, seed, rounds):
    """A thousand connections that say nothing: others are answered."""
    clients, begin = [connect(server.port) for _ in range(idle_count)], time.time()
    count = len(os.listdir(f"/proc/{server.process.pid}/fd"))
    for _ in range(10):
        if ask(server.port, request({"prompt": "a", "max_tokens": 1}))[0] != 200:
            fail("a request beside idle connections was refused")
    took = time.time() - begin
    until(lambda: len(os.listdir(f"/proc/{server.process.pid}/fd")) < 100, idle + 5)
    left = len(os.listdir(f"/proc/{server.process.pid}/fd"))
    if left > 100:
        fail(f"{left} descriptors are open after the idle time")
    for client in clients:
        client.close()
    return f"{idle_count} connections, {count} descriptors; 10 requests in {took:.1f} s; {left} descriptors after the idle time"


def kills(server, seed, rounds):
    """kill -9 while a session is saved: its bytes are restored by the next process, to the same text, or refused in words."""
    draw, whole, cut = random.Random(seed), 0, 0
    prompt, path = "the tape turns a drum " * 400, "/v1/models/attention/sessions/k"
    for _ in range(10):
        own = Served(16384)
        first = request({"model": "attention", "prompt": prompt, "max_tokens": 4, "temperature": 0, "session": {"keep": "k"}})
        go_on = request({"model": "attention", "prompt": " on", "max_tokens": 8, "temperature": 0, "session": {"from": "k"}})
        if ask(own.port, first)[0] != 200:
            fail("no session was kept")
        expected = json.loads(ask(own.port, go_on)[1])["choices"][0]["text"]
        killer = threading.Timer(draw.random() * 0.5, own.process.kill)
        with connect(own.port) as client:
            killer.start()
            received = b""
            try:
                client.sendall(request(b"", path, "GET"))
                while part := client.recv(16384):
                    received += part
            except OSError:
                pass
        killer.join()
        own.process.wait()
        head, _, saved = received.partition(b"\r\n\r\n")
        size = re.search(rb"Content-Length: (\d+)", head)
        complete = size is not None and len(saved) == int(size[1])
        cut += bool(saved) and not complete
        own = Served(16384)
        if ask(own.port, go_on)[0] != 404:
            fail("a session outlives its process")
        status, said = ask(own.port, request(saved or b"x", path, "PUT"))
        if (status == 200) != complete or (status != 200 and "error" not in json.loads(said)):
            fail(f"restored {len(saved)} bytes (complete: {complete}): {status} {said[:100]}")
        if complete:
            whole += 1
            if json.loads(ask(own.port, go_on)[1])["choices"][0]["text"] != expected:
                fail("a restored session goes on with another text")
        own.process.kill()
        own.process.wait()
    return f"10 kills; {whole} sessions had been saved whole, and go on with the same text; {cut} had been cut, and are refused"


phases = {f.__name__: f for f in (vanish, trickle, pipeline, malformed, chunks, slow, idlers, kills)}


def check_slots(server):
    """As many requests at once as there are places are all answered."""
    if not until(lambda: server.gauges() == 0):
        fail(f"{server.gauges()} texts still run")
    statuses = []
    threads = [threading.Thread(target=lambda: statuses.append(ask(server.port, request({"prompt": "a", "max_tokens": 200}))[0]))
               for _ in range(slots + queue)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if statuses != [200] * (slots + queue):
        fail(f"places are lost: {statuses}")


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


def attack(rounds, seed, chosen):
    server = Served()
    ask(server.port, request({"prompt": "a", "session": {"keep": "s"}}))
    listening = socket.create_server(("127.0.0.1", 0), backlog=100)
    plainly = multiprocessing.Process(target=plain, args=(listening,), daemon=True)
    plainly.start()
    stop, results = multiprocessing.Event(), multiprocessing.Queue()
    probing = multiprocessing.Process(target=probe, args=(server.port, listening.getsockname()[1], stop, results), daemon=True)
    probing.start()
    resident = []
    for turn in range(rounds):
        for name, phase in phases.items():
            if chosen and name not in chosen:
                continue
            begin = time.time()
            said = phase(server, seed + turn, rounds)
            print(f"{name}: {said}; {time.time() - begin:.0f} s, {server.resident_mb():.0f} MB resident", flush=True)
            if server.process.poll() is not None:
                fail(f"the server has ended: {server.process.returncode}\n{open('served').read()[-2000:]}")
                return
        check_slots(server)
        resident.append(server.resident_mb())
    stop.set()
    ours, machine = zip(*results.get(timeout=30))
    for who, times in (("/health", sorted(ours)), ("a trivial server", sorted(machine))):
        print(f"{who}: {len(times)} answers, median {times[len(times) // 2]:.1f} ms, p99 {times[int(0.99 * len(times))]:.1f}, max {times[-1]:.1f}")
    if max(ours) > limit_ms + max(machine):
        fail(f"/health took {max(ours):.0f} ms")
    print(f"resident after each round, MB: {', '.join(f'{x:.1f}' for x in resident)}")
    if resident[-1] > resident[0] + most_growth_mb:
        fail("resident memory grows")
    server.process.send_signal(signal.SIGTERM)
    if server.process.wait(20) != 0:
        fail(f"the server ended with {server.process.returncode}")
    listening.close()


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    soft = min(hard, 65536) if hard != resource.RLIM_INFINITY else 65536
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    print(f"open files at most: {soft}")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        prepare()
        attack(rounds, int(sys.argv[2]) if len(sys.argv) > 2 else 1, sys.argv[3:])
        os.chdir("/")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
