"""Random changes of valid requests."""
import json
import random
import re
import socket
import threading

from client import answer, ask, connect, fail, get, request, together

malformed_count = 10_000
knobs = ["model", "prompt", "max_tokens", "n", "best_of", "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "seed", "stop",
         "stream", "stream_options", "logprobs", "echo", "session", "user", "suffix", "logit_bias", "input", "tokens", "other"]
values = [None, True, False, 0, 1, 2, 7, -1, 0.5, 1e300, -1e-300, 2**63 - 1, 2**63, -2**63, 2**64, "", "a", "aft", "attention", "\0", "\ud800", "x" * 5000,
          [], {}, [[]], [""], [1, 2], [[1], [2]], [255], [256], [-1], ["a", 1], [None], {"keep": "a"}, {"from": "a"}, {"from": "zz"},
          {"include_usage": True}, {"keep": 1}, [[[[]]]]]


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
             request({"prompt": [1, 2], "max_tokens": 1, "session": {"from": "s", "keep": "b"}}),
             request({"tokens": [1, 2, 3]}, "/detokenize"),
             get("/health"), get("/"), get("/v1/models/aft"),
             b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1e\r\n{\"prompt\":\"a b\",\"model\":\"aft\"}\r\n0\r\n\r\n"]

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
