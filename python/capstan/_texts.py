"""Texts as people have them: lists, tuples, arrays, Series."""


def as_texts(texts):
    """A list of strings or, for texts of several columns, of tuples of strings."""
    if isinstance(texts, (str, bytes)):
        raise TypeError("texts: a list of texts is needed, not one text; write [text]")
    if hasattr(texts, "columns"):  # of pandas
        if len(texts.columns) != 1:
            raise TypeError(f"texts: a DataFrame of {len(texts.columns)} columns; give one of them, df[{texts.columns[-1]!r}]")
        texts = texts.iloc[:, 0]
    if hasattr(texts, "tolist"):  # arrays of NumPy, Series of pandas
        texts = texts.tolist()
    if texts is None or isinstance(texts, dict) or not hasattr(texts, "__iter__"):
        raise TypeError(f"texts: a list of texts is needed, not {type(texts).__name__}")
    return [_as_text(text, index) for index, text in enumerate(texts)]


def _as_text(text, index):
    if isinstance(text, str):
        return _encodable(text, index)
    if isinstance(text, (tuple, list)) and text and all(isinstance(column, str) for column in text):
        return tuple(_encodable(column, index) for column in text)
    raise TypeError(f"texts[{index}]: a string (or a tuple of strings, for several columns) is needed, not {text!r:.60}")


def _encodable(text, index):
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"texts[{index}]: {error.reason} at character {error.start}; use text.encode(errors='replace').decode()") \
            from None
    return text
