"""The one expression of a `when:`: comparisons, `and`, `or`, `not`, `in` over what a unit knows.

It is Python's syntax and not Python: the tree is checked against a short list of what is allowed
and turned into functions, so nothing but the data of one unit can be read.
"""

from __future__ import annotations

import ast
import functools
import operator
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any, TypeGuard

import msgspec

from kubexm.common.nearest import did_you_mean
from kubexm.spec import kinds
from kubexm.spec.kinds import Unknown
from kubexm.spec.references import BadReference, Reference, look_up

MAX_TEXT = 10_000
MAX_NODES = 500
MAX_DEPTH = 32

Scope = Mapping[str, Any]
Evaluate = Callable[[Scope], Any]

_ROOTS = ("vars", "facts", "values", "host")
_CONSTANTS = {"true": True, "false": False, "null": None}
_COMPARISONS: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.In: ("in", lambda left, right: left in right),
    ast.NotIn: ("not in", lambda left, right: left not in right),
}
_METHODS: dict[str, Callable[..., Any]] = {
    "startswith": str.startswith,
    "endswith": str.endswith,
    "lower": str.lower,
    "upper": str.upper,
}
_ARGUMENTS = {"startswith": 1, "endswith": 1, "lower": 0, "upper": 0}
_ALLOWED = "use `==`, `<`, `in`, `and`, `or`, `not`, `len(x)`, `defined(x)` and plain values"


class BadExpression(ValueError):
    """An expression that can't be read, or that can't be decided; `hint` says what to do."""

    def __init__(self, message: str, hint: str = "", *, of_host: bool = False) -> None:
        super().__init__(message)
        self.hint = hint
        self.of_host = of_host
        """Whether one host has what it lacks, and another does not."""


class _AsKnown(dict[str, Any]):
    """A scope of which only a part is known: there are other roots, and more in `partial` ones."""

    def __init__(self, scope: Scope, partial: Collection[str]) -> None:
        super().__init__(scope)
        self.partial = partial


class Expression(msgspec.Struct, frozen=True):
    """A compiled condition and what it reads; `certain` are the names it can't do without."""

    text: str
    references: tuple[Reference, ...]
    certain: tuple[Reference, ...]
    _evaluate: Evaluate

    def holds(self, scope: Scope) -> bool:
        """Whether it is true for a unit; `BadExpression` if that can't be said."""
        return _truth(self._evaluate(scope), self.text) is True

    def judged(self, scope: Scope, *, partial: Collection[str] = ()) -> bool | None:
        """Whether it is true by what is known; None if it hangs on what is not.

        A root that is not in the scope is unknown, and so is what a `partial` one does not have.
        `BadExpression` if it can't be said whatever the unknown may be.
        """
        return _truth(self._evaluate(_AsKnown(scope, partial)), self.text)

    def decided(self, scope: Scope, *, partial: Collection[str] = ()) -> bool | None:
        """The same, and None if it can't be said."""
        try:
            return self.judged(scope, partial=partial)
        except BadExpression:
            return None


@functools.lru_cache(maxsize=1024)
def compile_expression(text: str, *, has_item: bool = False) -> Expression:
    """The expression in a text; `BadExpression` if it is none."""
    body = _parsed(text)
    compiler = _Compiler(has_item)
    evaluate = compiler.visit(body)
    return Expression(text, tuple(compiler.references), tuple(compiler.certain), evaluate)


def without_last_not(text: str) -> tuple[str | None, str] | None:
    """`(a) and not (b)` as `a` and `b`; None if it does not end like that."""
    text = text.strip()
    whole = _parsed(text)
    *before, last = whole.values if _is_and(whole) else [whole]
    if not isinstance(last, ast.UnaryOp) or not isinstance(last.op, ast.Not):
        return None
    rest = before[0] if len(before) == 1 else ast.BoolOp(ast.And(), before)
    return _written(rest, text) if before else None, _written(last.operand, text)


def _is_and(node: ast.expr) -> TypeGuard[ast.BoolOp]:
    return isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And)


def _written(node: ast.expr, text: str) -> str:
    """As its author wrote it, if it was one piece there."""
    return ast.get_source_segment(text, node) or ast.unparse(node)


def with_item(text: str, item: Any) -> str:
    """The expression with `item` replaced by its value, as text again."""
    if "item" not in text:
        return text
    return ast.unparse(ast.fix_missing_locations(_ItemWriter(item).visit(_parsed(text))))


def _parsed(text: str) -> ast.expr:
    if len(text) > MAX_TEXT:
        raise BadExpression(f"an expression of {len(text)} characters", "make it shorter")
    if "${" in text:
        raise BadExpression(
            "a reference with `${…}` in an expression", "write `vars.x`, without `${` and `}`"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise BadExpression(f"not an expression: {error.msg}", _ALLOWED) from error
    except (ValueError, MemoryError, RecursionError) as error:
        raise BadExpression("an expression that is nested too deep", "make it simpler") from error
    _check_size(body)
    return body


def _check_size(body: ast.expr) -> None:
    """Bounded here, so that whatever walks the tree later may be recursive."""
    waiting: list[tuple[ast.AST, int]] = [(body, 1)]
    for number, (node, depth) in enumerate(waiting, 1):
        if depth > MAX_DEPTH:
            raise BadExpression("an expression that is nested too deep", "make it simpler")
        if number > MAX_NODES:
            raise BadExpression(f"an expression of more than {MAX_NODES} parts", "make it simpler")
        waiting.extend((child, depth + 1) for child in ast.iter_child_nodes(node))


class _Compiler:
    """Turns a tree into functions and notes what is read on the way."""

    def __init__(self, has_item: bool) -> None:
        self._has_item = has_item
        self.references: list[Reference] = []
        self.certain: list[Reference] = []

    def visit(self, node: ast.expr) -> Evaluate:
        match node:
            case ast.Constant(value=str() | int() | float() | None):
                return _constant(node.value)
            case ast.Name(id=name) if name in _CONSTANTS:
                return _constant(_CONSTANTS[name])
            case ast.Name() | ast.Attribute() | ast.Subscript():
                return self._read(node)
            case ast.Compare():
                return self._compare(node)
            case ast.Call():
                return self._call(node)
        return self._combine(node)

    def _combine(self, node: ast.expr) -> Evaluate:
        match node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return self._list(elements)
            case ast.BoolOp(op=op, values=values):
                return self._logic(op, values)
            case ast.UnaryOp(op=ast.Not() | ast.USub()):
                return self._unary(node)
        raise BadExpression(f"`{ast.unparse(node)}` is not allowed here", _ALLOWED)

    def _list(self, elements: list[ast.expr]) -> Evaluate:
        parts = [self.visit(element) for element in elements]

        def evaluate(scope: Scope) -> Any:
            values = [part(scope) for part in parts]
            return Unknown([]) if _any_unknown(values) else values

        return evaluate

    def _logic(self, op: ast.boolop, values: list[ast.expr]) -> Evaluate:
        parts = [(self.visit(value), ast.unparse(value)) for value in values]
        decisive = isinstance(op, ast.Or)  # one true part decides an `or`, one false an `and`

        def evaluate(scope: Scope) -> bool | Unknown:
            truths = (_truth(operand(scope), text) for operand, text in parts)
            return _combined(truths, decisive)

        return evaluate

    def _unary(self, node: ast.UnaryOp) -> Evaluate:
        operand, text = self.visit(node.operand), ast.unparse(node.operand)
        if isinstance(node.op, ast.Not):
            return lambda scope: _opposite(_truth(operand(scope), text))
        return lambda scope: _negative(operand(scope), text)

    def _compare(self, node: ast.Compare) -> Evaluate:
        operands = [self.visit(part) for part in (node.left, *node.comparators)]
        for op in node.ops:
            if type(op) not in _COMPARISONS:
                raise BadExpression(f"`{ast.unparse(node)}` compares with `is`", "write `==`")
        comparisons = list(_comparisons(node))

        def evaluate(scope: Scope) -> bool | Unknown:
            values = [operand(scope) for operand in operands]
            pairs = zip(comparisons, values, values[1:], strict=False)
            truths = (comparison.truth(left, right) for comparison, left, right in pairs)
            return _combined(truths, decisive=False)

        return evaluate

    def _call(self, node: ast.Call) -> Evaluate:
        arguments = node.args
        match node.func:
            case _ if node.keywords:
                pass
            case ast.Name(id="defined") if len(arguments) == 1:
                return self._defined(arguments[0])
            case ast.Name(id="len") if len(arguments) == 1:
                operand, text = self.visit(arguments[0]), ast.unparse(arguments[0])
                return lambda scope: _length(operand(scope), text)
            case ast.Attribute(value=subject, attr=name) if _ARGUMENTS.get(name) == len(arguments):
                return self._method(subject, name, arguments)
        raise BadExpression(f"`{ast.unparse(node)}` can't be called here", _ALLOWED)

    def _method(self, subject: ast.expr, name: str, arguments: list[ast.expr]) -> Evaluate:
        parts = [self.visit(part) for part in (subject, *arguments)]
        texts = [ast.unparse(part) for part in (subject, *arguments)]

        def evaluate(scope: Scope) -> Any:
            values = [part(scope) for part in parts]
            for value, text in zip(values, texts, strict=True):
                if not _is_like(value, str):
                    hint = f"leave `.{name}(…)` out, or put the value in quotes where it is written"
                    raise BadExpression(f"`{text}` is {kinds.of(value)}, want text", hint)
            if _any_unknown(values):
                return Unknown(_METHODS[name](*("" for _ in values)))
            return _METHODS[name](*values)

        return evaluate

    def _defined(self, argument: ast.expr) -> Evaluate:
        known = len(self.certain)
        operand = self.visit(argument)
        del self.certain[known:]

        def evaluate(scope: Scope) -> bool | Unknown:
            try:
                value = operand(scope)
            except BadExpression:
                return False
            return Unknown(True) if isinstance(value, Unknown) else True

        return evaluate

    def _read(self, node: ast.expr) -> Evaluate:
        names, indexes, root = _chain(node)
        if root is None:
            raise BadExpression(f"`{ast.unparse(node)}` is not allowed here", _ALLOWED)
        self._check_root(root, bool(names))
        reference = Reference(root, tuple(names))
        self.references.append(reference)
        self.certain.append(reference)
        rest = [self.visit(index) for index in indexes]
        return lambda scope: _found(reference, [index(scope) for index in rest], scope)

    def _check_root(self, root: str, named: bool) -> None:
        if root == "item":
            if not self._has_item:
                hint = "only a step with `forEach` has it"
                raise BadExpression("`item` outside of `forEach`", hint)
        elif root not in _ROOTS:
            hint = did_you_mean(root, (*_ROOTS, "item"))
            raise BadExpression(f"unknown name `{root}`", f"text is written in quotes; {hint}")
        elif not named:
            raise BadExpression(f"`{root}` without a name", f"write `{root}.NAME`")


class _ItemWriter(ast.NodeTransformer):
    """Puts the value of an item where its name stands."""

    def __init__(self, item: Any) -> None:
        self._item = item

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            names, indexes, root = _chain(node)
            if root == "item" and not indexes:
                return _literal(self._value(names))
        return self.generic_visit(node)

    def _value(self, names: list[str]) -> Any:
        try:
            return look_up(Reference("item", tuple(names)), self._item)
        except BadReference as error:
            raise BadExpression(str(error), error.hint) from error


def _literal(value: Any) -> ast.expr:
    if isinstance(value, list):
        return ast.List([_literal(element) for element in value], ast.Load())
    if isinstance(value, dict):
        raise BadExpression("a whole mapping in an expression", "name one of its keys: `item.KEY`")
    return ast.Constant(value)


def _chain(node: ast.expr) -> tuple[list[str], list[ast.expr], str | None]:
    """Names down from a root, if it is one; after the first index to be computed, expressions."""
    links: list[ast.expr] = []
    while isinstance(node, ast.Attribute | ast.Subscript):
        links.append(ast.Constant(node.attr) if isinstance(node, ast.Attribute) else node.slice)
        node = node.value
    if not isinstance(node, ast.Name):
        return [], links, None
    links.reverse()
    names = [str(link.value) for link in _leading_constants(links)]
    return names, links[len(names) :], node.id


def _leading_constants(links: list[ast.expr]) -> Iterator[ast.Constant]:
    for link in links:
        if not isinstance(link, ast.Constant) or type(link.value) not in (str, int):
            return
        yield link


def _found(reference: Reference, rest: list[Any], scope: Scope) -> Any:
    partial = scope.partial if isinstance(scope, _AsKnown) else None
    if partial is not None and reference.root not in scope:
        return _not_known(reference, rest)
    try:
        return _down(reference, rest, scope[reference.root])
    except BadReference as error:
        if partial is not None and reference.root in partial:
            return _not_known(reference, rest)
        raise BadExpression(str(error), error.hint, of_host=error.of_host) from error


def _down(reference: Reference, rest: list[Any], root: Any) -> Any:
    """What is named, as far down as the names are known."""
    if not rest:
        return look_up(reference, root)
    known = [str(name) for name in takewhile(lambda name: not isinstance(name, Unknown), rest)]
    found = look_up(Reference(reference.root, (*reference.path, *known)), root)
    return found if len(known) == len(rest) else Unknown()


def _not_known(reference: Reference, rest: list[Any]) -> Unknown:
    if reference.root != "facts" or rest:
        return Unknown()
    try:
        return Unknown(kinds.fact(reference.path))
    except KeyError:
        return Unknown()  # it is refused where facts are told


def _constant(value: Any) -> Evaluate:
    return lambda scope: value


def _any_unknown(values: Iterable[Any]) -> bool:
    return any(isinstance(value, Unknown) for value in values)


def _is_like(value: Any, *wanted: type) -> bool:
    """Whether a value is of one of these types, or may be."""
    like = kinds.example(value)
    return like is kinds.ANYTHING or isinstance(like, wanted)


def _truth(value: Any, text: str) -> bool | None:
    """What a part of a condition says; None if that is not known yet."""
    if isinstance(value, bool):
        return value
    if isinstance(value, Unknown) and _is_like(value, bool):
        return None
    message = f"`{text}` is {kinds.of(value)}, want true or false"
    raise BadExpression(message, kinds.as_a_question(value, text))


def _combined(truths: Iterable[bool | None], decisive: bool) -> bool | Unknown:
    """One that is decisive decides, also beside others that are not known."""
    unknown = False
    for truth in truths:
        if truth is decisive:
            return decisive
        unknown |= truth is None
    return Unknown(True) if unknown else not decisive


def _opposite(truth: bool | None) -> bool | Unknown:
    return Unknown(True) if truth is None else not truth


class _Comparison(msgspec.Struct, frozen=True):
    """How two values are compared, and how that is written."""

    sign: str
    test: Callable[[Any, Any], bool]
    text: str

    def truth(self, left: Any, right: Any) -> bool | None:
        """Whether it holds; None if one of the two is not known yet."""
        examples = (kinds.example(left), kinds.example(right))
        if kinds.ANYTHING in examples:
            return None
        try:
            truth = self.test(*examples)
        except TypeError as error:
            raise self._refused(kinds.of(left), kinds.of(right)) from error
        return None if _any_unknown((left, right)) else truth

    def _refused(self, left: str, right: str) -> BadExpression:
        if self.sign.endswith("in"):
            message = f"`{self.text}` looks for {left} in {right}"
            return BadExpression(message, "look in a list, or for text in text")
        message = f"`{self.text}` compares {left} with {right}"
        return BadExpression(message, "compare values of one kind")


def _comparisons(node: ast.Compare) -> Iterator[_Comparison]:
    """Those of each two neighbours."""
    texts = [ast.unparse(part) for part in (node.left, *node.comparators)]
    for op, left, right in zip(node.ops, texts, texts[1:], strict=False):
        sign, test = _COMPARISONS[type(op)]
        yield _Comparison(sign, test, f"{left} {sign} {right}")


def _negative(value: Any, text: str) -> Any:
    if isinstance(kinds.example(value), bool) or not _is_like(value, int, float):
        message = f"`{text}` is {kinds.of(value)}, want a number"
        raise BadExpression(message, "leave the `-` out")
    return Unknown(0) if isinstance(value, Unknown) else -value


def _length(value: Any, text: str) -> int | Unknown:
    if not _is_like(value, str, list, tuple, Mapping):
        message = f"`{text}` is {kinds.of(value)}, which has no length"
        raise BadExpression(message, f"write `{text}`, without `len`")
    return Unknown(0) if isinstance(value, Unknown) else len(value)
