"""A client over sockets, which may also do what no good client does; and what has gone wrong so far."""
import json
import socket
import struct
import threading
import time

failures = []


def fail(what):
    failures.append(what)
    print("  FAILED: " + what, flush=True)


def connect(port, timeout=30.0, address="127.0.0.1"):
    """`address`: that of the client, by which the server knows it."""
    return socket.create_connection(("127.0.0.1", port), timeout, (address, 0))


def reset(client):
    """Ends the connection by RST."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def request(body, path="/v1/completions", method="POST"):
    data = body if isinstance(body, bytes) else json.dumps({"model": "aft", **body}).encode()
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


def get(path):
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


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


def ask(port, bytes_sent, timeout=60.0, address="127.0.0.1"):
    with connect(port, timeout, address) as client:
        client.sendall(bytes_sent)
        return answer(client.makefile("rb"))


def until(condition, seconds=20):
    end = time.time() + seconds
    while not condition():
        if time.time() > end:
            return False
        time.sleep(0.05)
    return True


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
