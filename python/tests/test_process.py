"""Signals, forks and the environment."""
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import textwrap
import time

import pytest

import capstan


def run(program, *arguments):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)], capture_output=True, text=True,
                          timeout=120)


def test_importing_leaves_the_environment_as_it_was():
    said = run("""
        import os
        before = dict(os.environ)
        import capstan
        assert dict(os.environ) == before
    """)
    assert said.returncode == 0, said.stderr


def test_a_terminal_shows_a_bar(book, tmp_path):
    program = """
        import sys
        import capstan
        import conftest
        capstan.train(conftest.LANGUAGE_MODEL, sys.argv[1], folder=sys.argv[2], train__steps=1000)
    """
    main, end = pty.openpty()
    termios.tcsetwinsize(end, (24, 100))
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program), str(book), str(tmp_path)], stderr=end,
                             env={**os.environ, "TERM": "xterm"})
    os.close(end)
    shown = b""
    try:
        while part := os.read(main, 65536):
            shown += part
    except OSError:  # how a terminal ends
        pass
    assert child.wait(60) == 0
    assert re.search(rb"\[=+ *\] +\d+%", shown) and b"finished" in shown


def test_ctrl_c_ends_a_training_that_the_same_call_continues(book, tmp_path):
    program = textwrap.dedent("""
        import sys
        import capstan
        try:
            run = capstan.train("quickstart-lm", {"train": sys.argv[1], "split": "tail"}, folder=sys.argv[2], train__steps=int(sys.argv[3]))
            print("finished", run.history[-1]["step"])
        except KeyboardInterrupt:
            print("interrupted")
    """)
    command = [sys.executable, "-c", program, str(book), str(tmp_path), "2000"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    run_folder = tmp_path / "quickstart-lm"
    deadline = time.time() + 60
    while time.time() < deadline and not (run_folder / "metrics.jsonl").is_file():
        time.sleep(0.1)
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert out.strip() == "interrupted", err
    assert (run_folder / "checkpoints").is_dir()


def test_a_second_ctrl_c_does_not_end_the_process(book, tmp_path):
    said = run("""
        import os, signal, sys, threading, time
        import capstan
        import conftest

        def interrupt():
            while not os.path.exists(sys.argv[2] + "/lm/metrics.jsonl"):
                time.sleep(0.01)
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.001)

        threading.Thread(target=interrupt, daemon=True).start()
        try:
            capstan.train(conftest.LANGUAGE_MODEL, sys.argv[1], folder=sys.argv[2], train__steps=100000, quiet=True)
        except KeyboardInterrupt:
            print("interrupted")
    """, book, tmp_path)
    assert said.stdout == "interrupted\n", (said.returncode, said.stderr)


def test_ctrl_c_while_the_data_are_read_ends_the_training(tmp_path):
    book = tmp_path / "book.txt"
    book.write_text("The quick brown fox jumps over the lazy dog. " * 400_000)
    program = textwrap.dedent("""
        import sys, threading, time, os, signal
        import capstan
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            capstan.train("quickstart-lm", {"train": sys.argv[1], "split": "tail"}, folder=sys.argv[2], train__steps=100000,
                          on_log=lambda level, line: print(line, flush=True))
        except KeyboardInterrupt:
            print("interrupted")
    """)
    said = subprocess.run([sys.executable, "-c", program, str(book), str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert said.stdout.strip().endswith("interrupted"), said.stderr


@pytest.mark.parametrize("seconds", [0.2, 1, 3])  # reading, the first trial steps, later ones
def test_ctrl_c_while_a_plan_is_made_ends_the_training_and_leaves_a_module_that_trains(tmp_path, seconds):
    book = tmp_path / "book.txt"
    book.write_text("The quick brown fox jumps over the lazy dog. " * 40_000)
    said = run("""
        import os, signal, sys, threading, time
        import capstan
        import conftest

        def interrupt():
            global sent
            sent = time.time()
            os.kill(os.getpid(), signal.SIGINT)

        threading.Timer(float(sys.argv[3]), interrupt).start()
        try:
            capstan.train("lm", sys.argv[1], folder=sys.argv[2], train__minutes=5, quiet=True)
        except KeyboardInterrupt:
            print("interrupted", time.time() - sent)
        assert not os.path.exists(sys.argv[2] + "/lm"), "a plan that was not made has no run"
        print("then", capstan.train(conftest.LANGUAGE_MODEL, sys.argv[1], folder=sys.argv[2], quiet=True).score(["The dog"])[0][1])
    """, book, tmp_path / "runs", seconds)
    assert said.returncode == 0, said.stderr
    (word, took), (then, tokens) = (line.split() for line in said.stdout.splitlines())
    assert (word, then, tokens) == ("interrupted", "then", "7") and float(took) < 5, said.stdout


def test_an_exception_of_a_handler_ends_an_evaluation(language_model, tmp_path):
    book = tmp_path / "book.txt"
    book.write_text("The quick brown fox jumps over the lazy dog. " * 200_000)
    run = capstan.load(language_model.folder, data__test=[str(book)])

    class Late(Exception):
        pass

    def late(*_):
        raise Late

    before = signal.signal(signal.SIGALRM, late)
    started = time.time()
    signal.setitimer(signal.ITIMER_REAL, 1)
    try:
        run.evaluate("test")
        ended = True
    except Late:
        ended = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not ended and time.time() - started < 6


def test_handlers_of_alarms_run_while_a_model_computes(language_model):
    rang = []
    before = signal.signal(signal.SIGALRM, lambda *_: rang.append(time.time()))
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        text = "The quick brown fox. " * 200
        wanted = language_model.score([text])
        until = time.time() + 3
        while time.time() < until:
            assert language_model.score([text]) == wanted
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(rang) > 20


def test_a_fork_after_use_computes_the_same(language_model):
    wanted = language_model.score(["The dog"])
    child = os.fork()
    if child == 0:
        os._exit(0 if language_model.score(["The dog"]) == wanted else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_fork_after_a_classifier_has_been_used_computes_the_same():
    texts = [f"the text of class {i % 200}" for i in range(400)]
    classifier = capstan.Classifier(model__folds=2).fit(texts, [i % 200 for i in range(400)])
    wanted = classifier.predict_proba(texts[:256])
    child = os.fork()
    if child == 0:
        os._exit(0 if (classifier.predict_proba(texts[:256]) == wanted).all() else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_an_exception_of_a_handler_ends_a_long_call(language_model):
    class Late(Exception):
        pass

    def late(*_):
        raise Late

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    started = time.time()
    try:
        language_model.embed(["The quick brown fox. " * 50] * 200000)
    except Late:
        pass
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.time() - started < 5
