import os
import threading

import numpy as np
import pytest

import capstan


def test_a_language_model_writes_scores_and_embeds(language_model):
    pieces = list(language_model.generate("The ", max_tokens=20, temperature=0))
    assert len("".join(pieces)) == 20
    (likely, tokens), (unlikely, _) = language_model.score(["The quick brown fox", "xqzvw kkqj zzzzxx"])
    assert likely > unlikely and tokens == 19
    assert language_model.embed(["a", "bc"]).shape == (2, 32)
    assert language_model.task == "next_token"
    assert language_model.evaluate()["bits_per_byte"] < 8


def test_the_same_seed_writes_the_same_text(language_model):
    first = language_model.generate_samples("The ", 3, max_tokens=12, seed=7)
    assert first == language_model.generate_samples("The ", 3, max_tokens=12, seed=7)
    assert len(set(first)) > 1


def test_a_text_that_is_left_unfinished_ends_when_it_is_dropped(language_model):
    pieces = language_model.generate("The ", max_tokens=100000)
    next(pieces)
    pieces.close()


def test_a_slow_reader_holds_the_writer_back(language_model):
    import time

    pieces = language_model._native.generate("The ", 2000, 1, capstan._run._sampling(), [], False)
    pieces.next()
    time.sleep(1)
    ahead = pieces.ahead()
    time.sleep(0.5)
    assert pieces.ahead() == ahead <= 64
    written = 1
    while pieces.next() is not None:
        written += 1
    assert written >= 2000


def test_only_a_linear_classifier_explains(language_model):
    with pytest.raises(capstan.Error, match="needs a classifier"):
        language_model.explain("a")


def test_a_method_for_another_kind_of_model_says_which_it_needs(language_model):
    with pytest.raises(capstan.Error, match="needs a classifier"):
        language_model.predict_proba(["a"])
    with pytest.raises(capstan.Error, match="generate"):
        language_model.predict(["a"])


def test_a_run_opens_again_with_its_metrics(language_model):
    again = capstan.load(language_model.folder)
    assert again.score(["The dog"]) == language_model.score(["The dog"])
    assert again.history == language_model.history and len(again.history) > 0


def test_errors_name_the_place_and_the_remedy(tmp_path):
    with pytest.raises(capstan.Error, match="nowhere"):
        capstan.load(tmp_path / "nowhere")
    with pytest.raises(capstan.Error, match="did you mean 'classify'"):
        capstan.train("clasify")
    with pytest.raises(capstan.Error, match="^train.stepz"):
        capstan.train("lm", train__stepz=3)
    assert issubclass(capstan.Error, ValueError)


def test_an_observer_gets_the_lines_of_the_log(book, tmp_path):
    lines = []
    capstan.train("quickstart-lm", {"train": book, "split": "tail"}, on_log=lambda level, line: lines.append((level, line)), folder=tmp_path,
                  train__steps=2, train__valid_every=0)
    assert lines and all(level in ("info", "warning", "error") for level, _ in lines)


def test_lines_go_to_the_logging_that_the_program_has_configured(book, tmp_path, caplog, capfd):
    train = dict(folder=tmp_path, train__steps=2, train__valid_every=0)
    capstan.train("quickstart-lm", {"train": book, "split": "tail"}, name="unconfigured", **train)
    assert "finished" in capfd.readouterr().err and not caplog.records
    with caplog.at_level("INFO", logger="capstan"):
        capstan.train("quickstart-lm", {"train": book, "split": "tail"}, name="info", **train)
    assert "finished" in caplog.text and "finished" not in capfd.readouterr().err
    assert {record.levelname for record in caplog.records} <= {"INFO", "WARNING"}
    with caplog.at_level("DEBUG", logger="capstan"):
        capstan.train("quickstart-lm", {"train": book, "split": "tail"}, name="debug", **train)
    assert any(record.levelname == "DEBUG" and "saved" in record.message for record in caplog.records)


def test_an_observer_may_compute_but_not_train(book, language_model, tmp_path):
    said, refused = [], []

    def observe(level, line):
        if said:
            return
        said.append(language_model.evaluate())
        try:
            capstan.train("quickstart-lm", book)
        except capstan.Error as error:
            refused.append(str(error))

    capstan.train("quickstart-lm", {"train": book, "split": "tail"}, on_log=observe, folder=tmp_path, train__steps=2,
                  train__valid_every=0)
    assert said[0]["loss"] > 0 and "on_log" in refused[0]


def test_an_evaluation_needs_the_files_of_its_split_alone(reviews, tmp_path):
    rows = [f"{label}\t{text}\n" for text, label in zip(*reviews)]
    for name in ("train.tsv", "test.tsv"):
        (tmp_path / name).write_text("".join(rows))
    run = capstan.train("classify", {"train": tmp_path / "train.tsv", "test": tmp_path / "test.tsv"}, folder=tmp_path, quiet=True)
    wanted = run.evaluate("test")
    (tmp_path / "train.tsv").unlink()
    assert run.evaluate("test") == wanted == run.evaluate()
    (tmp_path / "test.tsv").rename(tmp_path / "other.tsv")
    assert capstan.load(run.folder, data__test=[tmp_path / "other.tsv"]).evaluate("test") == wanted
    with pytest.raises(capstan.Error, match="data.test: .*test.tsv"):
        run.evaluate("test")


def test_a_model_is_exported(language_model, tmp_path):
    files = language_model.export("huggingface", tmp_path / "lm")
    assert str(tmp_path / "lm" / "modeling_capstan.py") in files and all(os.path.isfile(file) for file in files)
    with pytest.raises(capstan.Error, match="lm: .*give another one"):
        language_model.export("huggingface", tmp_path / "lm")
    with pytest.raises(capstan.Error, match="format: keras is not one of huggingface, onnx, gguf"):
        language_model.export("keras", tmp_path / "other")


def test_a_slim_model_writes_and_scores(language_model, tmp_path):
    slim = language_model.slim(tmp_path / "slim")
    (full, _), (small, _) = language_model.score(["The quick brown fox"]) + slim.score(["The quick brown fox"])
    assert abs(full - small) < 0.02 * abs(full)
    assert len("".join(slim.generate("The ", max_tokens=5))) == 5


def test_eight_threads_predict_what_one_does(language_model):
    texts = [f"The quick brown {word}" for word in ("fox", "dog", "cat", "hen")]
    wanted = language_model.score(texts)
    found = [None] * 8

    def work(index):
        found[index] = [language_model.score(texts) for _ in range(20)]

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one == wanted for rows in found for one in rows)


def test_wrong_options_of_generation_are_named(language_model):
    with pytest.raises(TypeError, match="did you mean temperature"):
        language_model.generate("The ", temprature=1)
    with pytest.raises(TypeError, match="one text"):
        language_model.generate(["The "])
    with pytest.raises(ValueError, match="stop"):
        language_model.generate("The ", stop="")
