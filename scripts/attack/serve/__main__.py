#!/usr/bin/env python3
"""Attacks `capstan serve` as bad clients do, while a probe asks /health every 50 ms.

  scripts/attack.sh serve [ROUNDS] [SEED] [PHASE ...]      ROUNDS (2) of all phases, or of those with these names; 10,000 malformed
                                                           requests in all

A probe asks a trivial server at the same moments: what that takes is the machine's doing. No answer of /health may take more than 100 ms
above it. After all phases each slot and place must be free, resident memory as it was after the first round, and the server must end
in order. The phases of shares.py and doors.py start servers of their own. CAPSTAN_PROGRAM names another build of the program. The exit
code is 0 when nothing failed.
"""
import multiprocessing
import os
import resource
import signal
import socket
import sys
import tempfile
import threading
import time

import damage
import doors
import manners
import shares
from client import ask, fail, failures, get, request, until
from server import Served, prepare, queue, slots

max_growth_mb, limit_ms = 24, 100
phases = {f.__name__: f for f in (manners.vanish, manners.trickle, manners.pipeline, damage.malformed, manners.chunks, manners.slow,
                                  manners.idlers, shares.answers, shares.events, shares.bodies, shares.megabytes,
                                  shares.readers, shares.turns, shares.ending, doors.hosts, doors.framing)}


def probe(port, plain_port, stop, results):
    """Asks both servers every 50 ms on new connections; in a process of its own, which the attackers do not hold up."""
    found = []
    while not stop.is_set():
        both = []
        for at in (port, plain_port):
            begin = time.perf_counter()
            try:
                status, _ = ask(at, get("/health"), 10.0)
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


def check_slots(server):
    """As many requests at once as there are places are all answered."""
    if not until(server.is_idle):
        fail("texts still run")
    statuses = []
    threads = [threading.Thread(target=lambda: statuses.append(ask(server.port, request({"prompt": "a", "max_tokens": 200}))[0]))
               for _ in range(slots + queue)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if statuses != [200] * (slots + queue):
        fail(f"places are lost: {statuses}")


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
    if resident[-1] > resident[0] + max_growth_mb:
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
