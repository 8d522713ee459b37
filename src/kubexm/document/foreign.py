"""YAML of other programs: values of charts and objects of a cluster, read as these read it.

helm, kubectl and kubeadm go by the same library, which still knows much of YAML 1.1: `0644` is
octal, `yes` is `true`, and `<<` and tags mean something. What they would take for something else
than it looks like, or keep the last of, is noted.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping

from kubexm.document import scalars, source
from kubexm.document.scalars import Ambiguous, Scalar
from kubexm.document.source import Document, Words

_TAG = "tag:yaml.org,2002:"
# `y` and `n` too: https://github.com/kubernetes-sigs/yaml/blob/master/goyaml.v2/resolve.go
_FLAGS = {
    form: value
    for words, value in (("y yes true on", True), ("n no false off", False))
    for word in words.split()
    for form in (word, word.capitalize(), word.upper())
}
_OCTAL = re.compile(r"[-+]?0[0-7]+")
_OTHER_BASE = re.compile(r"[-+]?0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)")
_DIGIT_OR_SIGN = frozenset("0123456789+-")


def parse(text: str | bytes, file: str = "<text>") -> Document:
    """The document in a text; what those programs would read otherwise is noted in it."""
    return source.parse(text, file, words=_WORDS)


def _plain(word: str) -> Scalar:
    """The value of a word that was written without quotes."""
    if word in _FLAGS:
        return _FLAGS[word]
    if word[:1] not in _DIGIT_OR_SIGN:
        return scalars.resolve(word)
    digits = word.replace("_", "")
    if _OCTAL.fullmatch(digits):
        return scalars.based(digits, 8)
    if _OTHER_BASE.fullmatch(digits):
        return scalars.based(digits, 0)
    found = scalars.resolve(digits)
    return word if isinstance(found, str) else found


def _key(word: str) -> str:
    """A key, which is text in the end, whatever it is read as before."""
    found = _plain(word)
    if isinstance(found, str) or word == _as_key(found):
        return word
    raise Ambiguous(f"`{word}` is read as `{_as_key(found)}`", f'write "{word}", in quotes')


def _as_key(value: Scalar) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else f"{value:.17g}"


def _tagged(tag: str, word: str) -> Scalar:
    """The value of a word, quoted or not, with a tag in front of it."""
    name = tag.removeprefix(_TAG)
    if tag == name or name not in _TAGGED:
        raise Ambiguous(f"the tag `{tag}`", "leave it out: values are plain data")
    return _TAGGED[name](word)


def _whole(word: str) -> Scalar:
    if type(found := _plain(word)) is int:
        return found
    raise _unlike("int", word)


def _float(word: str) -> Scalar:
    if type(found := _plain(word)) in (int, float):
        return float(found)  # type: ignore[arg-type]
    raise _unlike("float", word)


def _flag(word: str) -> Scalar:
    if word in _FLAGS:
        return _FLAGS[word]
    raise _unlike("bool", word)


def _nothing(word: str) -> Scalar:
    if _plain(word) is None:
        return None
    raise _unlike("null", word)


def _binary(word: str) -> Scalar:
    try:
        return base64.b64decode("".join(word.split()), validate=True).decode()
    except (binascii.Error, ValueError) as error:
        hint = "write text, or what is no text under a field that takes base64"
        raise Ambiguous("`!!binary` with what is no base64 of a text", hint) from error


def _unlike(tag: str, word: str) -> Ambiguous:
    return Ambiguous(f"`{word[:20]}` as a `!!{tag}`", "leave the tag out, or write such a value")


_TAGGED: Mapping[str, Callable[[str], Scalar]] = {
    "str": str,
    "timestamp": str,
    "int": _whole,
    "float": _float,
    "bool": _flag,
    "null": _nothing,
    "binary": _binary,
}
_WORDS = Words(_plain, _key, _tagged, collections={f"{_TAG}map": dict, f"{_TAG}seq": list})
