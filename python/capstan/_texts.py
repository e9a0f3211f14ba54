"""Texts as people have them: lists, tuples, arrays, Series."""


def as_texts(texts):
    """A list of strings or, for texts of several columns, of tuples of strings."""
    if isinstance(texts, (str, bytes)):
        raise TypeError("texts: a list of texts is needed, not one text; write [text]")
    if hasattr(texts, "tolist"):  # arrays of NumPy, Series of pandas
        texts = texts.tolist()
    return [_as_text(text, index) for index, text in enumerate(texts)]


def _as_text(text, index):
    if isinstance(text, str):
        return text
    if isinstance(text, (tuple, list)) and text and all(isinstance(column, str) for column in text):
        return tuple(text)
    raise TypeError(f"texts[{index}]: a string (or a tuple of strings, for several columns) is needed, not {text!r:.60}")
