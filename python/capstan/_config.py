"""Configurations as Python writes them: recipes by name, dictionaries, keys as arguments."""
import difflib
import json
import os
from pathlib import Path

from ._capstan import Error

RECIPES = Path(__file__).parent / "configs"


def recipe_names():
    return sorted(path.stem for path in RECIPES.glob("*.yaml"))


def config_file(config):
    """The path of a YAML file that is named by its path or, as the program does, by the name of a recipe."""
    path = Path(config)
    if path.is_file():
        return str(path)
    recipe = RECIPES / f"{config}.yaml"
    if recipe.is_file():
        return str(recipe)
    near = difflib.get_close_matches(str(config), recipe_names(), 1)
    raise Error(
        f"{config}: no such file, and no recipe of this name"
        + (f"; did you mean {near[0]!r}?" if near else f"; recipes are {', '.join(recipe_names())}")
    )


def key_of(argument):
    """train__steps and train.steps both mean the key train.steps."""
    return argument.replace("__", ".")


def plain(value):
    """A value that JSON, and so YAML, can have: paths become text, NumPy's numbers those of Python."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # of NumPy
        return plain(value.tolist())
    return value


def override(key, value):
    """A value for a key, as --set takes it."""
    return f"{key}={json.dumps(plain(value), ensure_ascii=False)}"


def set_key(tree, key, value):
    """Sets a key of a dictionary of dictionaries; a part of the key may be the index of a list."""
    *above, last = key.split(".")
    for part in above:
        tree = tree[int(part)] if isinstance(tree, list) else tree.setdefault(part, {})
    if isinstance(tree, list):
        tree[int(last)] = value
    else:
        tree[last] = value


def data_keys(data):
    """What train(data=...) means: files of training data, or the keys below data."""
    if data is None:
        return {}
    if isinstance(data, dict):
        return {f"data.{key}": _files(key, value) for key, value in data.items()}
    return {"data.train": _files("train", data)}


def _files(key, value):
    if key in ("train", "valid", "test") and isinstance(value, (str, os.PathLike)):
        value = [value]
    return plain(value)
