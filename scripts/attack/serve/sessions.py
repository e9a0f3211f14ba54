"""kill -9 while a session is saved."""
import json
import random
import re
import threading

from client import ask, connect, fail, request
from server import Served

body_kb = 16384


def kills(server, seed, rounds):
    """kill -9 while a session is saved: its bytes are restored by the next process, to the same text, or refused in words."""
    draw, whole, cut = random.Random(seed), 0, 0
    prompt, path = "the tape turns a drum " * 400, "/v1/models/attention/sessions/k"
    for _ in range(10):
        own = Served([*Served.limits, "--max-body-kb", str(body_kb), "--cache-mb", str(body_kb // 64 + 8)])
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
        own = Served([*Served.limits, "--max-body-kb", str(body_kb), "--cache-mb", str(body_kb // 64 + 8)])
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
