"""Clients that leave, trickle, send much at once or too much, and read or say nothing."""
import json
import random
import socket
import statistics
import time

from client import answer, ask, connect, fail, get, request, reset, together, until
from server import idle, slots

idle_count = 1_000
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
        parts = [request({"prompt": "a", "max_tokens": 1, "seed": k}) if k % 2 else get("/health")
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


def chunks(server, seed, rounds):
    """Bodies without a size that exceed the limit: 413, and no more is taken than is needed to say so."""
    seen = []

    def one(i):
        client, sent = connect(server.port), 0
        client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
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
    if not until(server.is_idle, 120):
        fail("streams that nobody reads still run")
    for client in clients:
        client.close()
    return f"{slots - 1} streams; beside them, 4 tokens take {statistics.median(times):.0f} ms (median), {max(times):.0f} (max)"


def idlers(server, seed, rounds):
    """A thousand connections that say nothing: others are answered."""
    clients, begin = [connect(server.port) for _ in range(idle_count)], time.time()
    count = server.descriptors()
    for _ in range(10):
        if ask(server.port, request({"prompt": "a", "max_tokens": 1}))[0] != 200:
            fail("a request beside idle connections was refused")
    took = time.time() - begin
    until(lambda: server.descriptors() < 100, idle + 5)
    left = server.descriptors()
    if left > 100:
        fail(f"{left} descriptors are open after the idle time")
    for client in clients:
        client.close()
    return f"{idle_count} connections, {count} descriptors; 10 requests in {took:.1f} s; {left} descriptors after the idle time"
