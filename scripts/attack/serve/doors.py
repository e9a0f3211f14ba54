"""What a request says of itself: the name of the server, and where the request ends."""
import json
import subprocess

from client import answer, ask, connect, fail
from server import Served, program


def status_of(port, head, body=b""):
    try:
        return ask(port, head.replace("\n", "\r\n").encode() + body, 5)[0]
    except OSError:
        return 0


def hosts(server, seed, rounds):
    """A page under a name that is made to mean this server must not read its models: only names that were given are answered."""
    has_names = "--host-name" in subprocess.run([program, "serve", "--help"], capture_output=True, text=True).stdout
    own = Served(["--host-name", "models.example", "gpu7"] if has_names else [])
    wanted = {"localhost": 200, f"localhost:{own.port}": 200, "LOCALHOST": 200, "127.0.0.1": 200, f"127.0.0.1:{own.port}": 200,
              "[::1]:8080": 200, "192.168.1.7": 200, "models.example": 200, "Models.Example:443": 200, "gpu7:80": 200,
              "evil.example": 403, f"evil.example:{own.port}": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example": 403,
              "models.example.evil.example": 403, "evil.example:@localhost": 403, "localhost:8080@evil.example": 403, "[evil.example]": 403,
              "127.0.0.1 evil.example": 403, "2130706433": 403, "::1]": 403, "[": 403, "[]": 403, "a:b:c": 403}
    found = {name: status_of(own.port, f"GET /v1/models HTTP/1.1\nHost: {name}\n\n") for name in wanted}
    origin = status_of(own.port, "GET /v1/models HTTP/1.1\nHost: evil.example\nOrigin: http://evil.example\n\n")
    own.end()
    wrong = {name: found[name] for name in wanted if found[name] not in (wanted[name], 400 if wanted[name] == 403 else 200)}
    if wrong or origin != 403:
        fail(f"names of the server: {wrong}, a page of evil.example {origin}")
    return f"{len(wanted)} names, of which {sum(v == 200 for v in found.values())} are answered; a page of evil.example is given {origin}"


def framing(server, seed, rounds):
    """Requests about whose end a proxy could have another opinion: one answer, 400, and no second request."""
    second = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    heads = ["Transfer-Encoding: xchunked", "Transfer-Encoding: chunked, identity", "Transfer-Encoding: identity", "Transfer-Encoding: gzip, chunked",
             "Transfer-Encoding: xchunked\nContent-Length: 5", "Transfer-Encoding: chunked\nContent-Length: 5",
             "Content-Length: 5\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\nTransfer-Encoding: identity",
             "Transfer-Encoding: chunked\nTransfer-Encoding: chunked", "Content-Length: 5\nContent-Length: 6", "Content-Length: 5\nContent-Length: 5",
             "Content-Length: +5", "Content-Length: 5, 5", "Content-Length: 0x5", "Content-Length : 5", "Transfer-Encoding : chunked",
             "Transfer-Encoding:\n chunked", "Transfer-Encoding: \x0bchunked", "Host: other"]
    passed = []
    for head in heads:
        with connect(server.port, 5) as client:
            client.sendall(f"POST /v1/completions HTTP/1.1\nHost: localhost\n{head}\n\n".replace("\n", "\r\n").encode() + second)
            stream, statuses = client.makefile("rb"), []
            try:
                while (said := answer(stream))[0] != 0:
                    statuses.append(said[0])
                    if statuses[-1] >= 400 and "error" not in json.loads(said[1]):
                        fail(f"no error object for {head!r}")
            except OSError:
                statuses.append("cut")
        if statuses != [400]:
            passed.append((head, statuses))
    if passed:
        fail(f"requests with two ends: {passed}")
    if (status := status_of(server.port, "GET /health HTTP/1.1\nHost: localhost\nContent-Length: 5\n\n", b"hello")) < 400:
        fail(f"a body of GET /health: {status}")
    return f"{len(heads)} heads, {len(heads) - len(passed)} refused with 400 alone"
