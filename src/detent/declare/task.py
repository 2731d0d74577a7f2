"""Tasks and calls: a task is a decorated function, a call is a task with its arguments, described but not sent."""

from __future__ import annotations

import inspect
import math
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

import msgspec

from detent.declare.context import Context
from detent.declare.limit import CostOf, KeyOf, Limit, check_cost, check_function, cost_of, given_to, key_for
from detent.declare.probe import check_probe
from detent.declare.settings import Settings
from detent.errors import InvalidArguments, InvalidInput, InvalidPayload, InvalidSetting
from detent.model import json_codec
from detent.model.backoff import Retry
from detent.model.json_types import fault_of_type
from detent.model.records import NewJob

if TYPE_CHECKING:
    from detent.declare.workflow import WorkflowOptions

__all__ = ["AnyTask", "Call", "Options", "Task", "TaskDeclarer", "name_of"]

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
D = TypeVar("D")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a task, checked when it is declared."""

    queue: str = "default"
    priority: int = 0
    retry: Retry = field(default_factory=Retry)
    timeout: float | None = None
    unique: Literal["pending", "active"] | None = None
    idempotent: bool = True
    process: bool = False
    dead_letter: bool = True
    result_ttl: float | None = None
    stale_after: float | None = None
    stalled_after: float | None = None
    limit: Limit | None = None
    limit_key: str | KeyOf | None = None
    cost: int | CostOf | None = None
    probe: Callable[..., Any] | None = None
    secret: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_secret(self.secret)
        check_priority(self.priority)
        if self.unique not in (None, "pending", "active"):
            raise InvalidSetting("unique", repr(self.unique), "None, 'pending' or 'active'")
        for name in ("timeout", "result_ttl"):
            if (value := getattr(self, name)) is not None:
                check_seconds(name, value)
        for name in ("stale_after", "stalled_after"):
            if (value := getattr(self, name)) is not None and value != math.inf:
                check_seconds(name, value)
        for name in ("idempotent", "process", "dead_letter"):
            if not isinstance(value := getattr(self, name), bool):
                raise InvalidSetting(name, repr(value), "True or False")
        if not isinstance(self.retry, Retry):
            raise InvalidSetting("retry", repr(self.retry), "a policy such as Retry(3)")
        if self.limit is not None and not isinstance(self.limit, Limit):
            raise InvalidSetting("limit", repr(self.limit)[:80], "a limit such as Limit(concurrency=5)")
        key: object = self.limit_key
        if key is not None and not isinstance(key, str) and not callable(key):
            found = f"a value of type {type(key).__name__}"
            raise InvalidSetting("limit_key", found, "a string, or a function of the arguments that returns one")
        if self.limit_key is not None and self.limit is None:
            raise InvalidSetting(
                "limit_key", f"{self.limit_key!r} without a limit"[:80], "limit_key together with limit"
            )
        check_cost(self.cost, self.limit)


class Call(msgspec.Struct, Generic[R_co], frozen=True, gc=False):
    """A call of a task with its arguments, checked and encoded as JSON, and not sent yet."""

    task: Task[..., R_co, Any]
    payload: str

    @property
    def fingerprint(self) -> str:
        """Digest of task and arguments, to compare calls under the same key."""
        return json_codec.fingerprint(self.task.name, self.payload)


class Task(Generic[P, R, D]):
    """A function that workers execute: `task.call(...)` describes a call, `task(ctx, ...)` just runs the function.

    The result of a job is an R. A direct call returns a D: R itself, or a coroutine of it if the function is async. A
    function that cannot be called by name from JSON is refused at declaration.
    """

    def __init__(
        self,
        function: Callable[Concatenate[Context, P], D],
        *,
        name: str | None,
        aliases: Sequence[str],
        options: Options,
        settings: Settings,
    ) -> None:
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        self.name = name_of(function) if name is None else name
        self.aliases = _aliases(aliases)
        self.options = options
        self.workflow: WorkflowOptions | None = None  # set by `app.workflow`
        self.prototype: NewJob | None = None  # what its jobs have in common; set by the first enqueue
        self._settings = settings
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", self.name)
        for one in (self.name, *self.aliases):
            json_codec.text(one, field="task name", bytes_max=settings.name_max)
        json_codec.text(options.queue, field="queue", bytes_max=settings.name_max)
        json_codec.text(self.limit_key, field="limit_key", bytes_max=settings.name_max)
        self._parameters = _parameters(self.name, function)
        self._check_types()
        for path in options.secret:
            if (named := path.partition(".")[0]) not in (*self._parameters, "result"):
                found = f"{path!r}, and {self.name} has no parameter {named!r}"
                raise InvalidSetting("secret", found, f"paths that begin with {', '.join(self._parameters)} or result")
        if options.probe is not None:
            check_probe(options.probe, function, idempotent=options.idempotent)
        self._key_asks = (
            check_function("limit_key", options.limit_key, self._parameters) if callable(options.limit_key) else None
        )
        self._cost_asks = check_function("cost", options.cost, self._parameters) if callable(options.cost) else None

    def __call__(self, ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> D:
        """Run the function directly, without a job."""
        return self.function(ctx, *args, **kwargs)

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    @property
    def limit_key(self) -> str:
        """Key of its limit; default: the name of the task. If `limit_key` is a function, the limit of this key has the
        bounds for each key that it returns."""
        return self.options.limit_key if isinstance(self.options.limit_key, str) else self.name

    def limit_key_of(self, payload: str) -> str | None:
        """Return the limit key of a job with these arguments; None if it is that of the task. `InvalidInput`."""
        if not callable(self.options.limit_key):
            return None
        given = given_to(self._key_asks, self._filled(payload))
        return key_for(self.options.limit_key, given, bytes_max=self._settings.name_max)

    def cost_of(self, payload: str) -> int | None:
        """Return how many tokens of its limit a job with these arguments takes; None is one. `InvalidInput`."""
        cost, limit = self.options.cost, self.options.limit
        if cost is None or limit is None:
            return None
        found = cost_of(cost, given_to(self._cost_asks, self._filled(payload)), limit) if callable(cost) else cost
        return None if found == 1 else found

    def _filled(self, payload: str) -> dict[str, Any]:
        """Return the arguments by name, with the defaults of those that are left out."""
        defaults = {
            name: parameter.default
            for name, parameter in self._parameters.items()
            if parameter.default is not inspect.Parameter.empty
        }
        return defaults | self.decode(payload)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Describe a call. `InvalidArguments` if the arguments do not fit the signature, or JSON cannot represent
        them."""
        settings = self._settings
        bound = self._bound(args, kwargs)
        if self._scalars is not None:
            plain = json_codec.encode_scalars(bound, self._scalars, size_max=settings.payload_max)
            if plain is not None:
                return Call(self, plain)
        text = json_codec.encode(bound, field=self.name, size_max=settings.payload_max, depth_max=settings.depth_max)
        if not json_codec.fits(text, self._arguments):
            self.decode(text)
        return Call(self, text)

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments by name, in the order of the signature. Ordinary calls, all by position or all by name,
        are matched without `inspect`, which is slow."""
        if not kwargs and len(args) == len(self._positional):
            return dict(zip(self._positional, args))  # noqa: B905 lengths are equal; strict=True costs a sixth
        if not args:
            if tuple(kwargs) == self._names:
                return kwargs
            if kwargs.keys() == self._parameters.keys():
                return {name: kwargs[name] for name in self._parameters}
        try:
            return self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise InvalidArguments(self.name, str(error), str(self._signature)) from None

    def decode(self, payload: str) -> dict[str, Any]:
        """Return the arguments of a payload by name, typed by the signature. `InvalidArguments` if they do not fit."""
        try:
            arguments = self._read(payload)
        except InvalidPayload as error:
            raise InvalidArguments(error.field, error.found, error.allowed) from None
        if self._are_required:
            return msgspec.structs.asdict(arguments)
        return {name: value for name in self._parameters if (value := getattr(arguments, name)) is not _ABSENT}

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Parameters of the function after the context, by name."""
        return self._parameters

    @cached_property
    def _read(self) -> Callable[[str], Any]:
        return json_codec.reader(self._arguments, field=self.name, depth_max=self._settings.depth_max)

    def encode_result(self, value: object) -> str | None:
        """Return a result as it is stored; None is not stored."""
        if value is None:
            return None
        return json_codec.encode(
            value,
            field=f"result of {self.name}",
            size_max=self._settings.result_max,
            depth_max=self._settings.depth_max,
        )

    def decode_result(self, text: str | None) -> R:
        """Return a stored result, typed by the function's return annotation."""
        if text is None:
            return typing.cast(R, None)
        hint = self._hints.get("return", Any)
        found = json_codec.decode(text, hint, field=f"result of {self.name}", depth_max=self._settings.depth_max)
        return typing.cast(R, found)

    @cached_property
    def _are_required(self) -> bool:
        """Whether every argument is required."""
        return all(parameter.default is inspect.Parameter.empty for parameter in self._parameters.values())

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(self._parameters)

    @cached_property
    def _positional(self) -> tuple[str, ...]:
        """Return the names of the parameters if all of them can be positional; otherwise none."""
        kinds = {parameter.kind for parameter in self._parameters.values()}
        return tuple(self._parameters) if kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD} else ()

    @cached_property
    def _scalars(self) -> dict[str, type] | None:
        """Return the types of all arguments if each is a plain number or string; otherwise None."""
        kinds: dict[str, Any] = {name: self._hints.get(name) for name in self._parameters}
        return kinds if all(kind in (bool, int, float, str) for kind in kinds.values()) else None

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.Signature(list(self._parameters.values()))

    @cached_property
    def _hints(self) -> dict[str, Any]:
        try:
            return typing.get_type_hints(self.function, include_extras=True)
        except NameError as error:
            raise InvalidArguments(
                self.name, f"an annotation that cannot be resolved: {error}", "types that are defined at module level"
            ) from None

    def _check_types(self) -> None:
        """Refuse types that JSON cannot carry, when the task is declared. `InvalidArguments`.

        Types that do not exist yet are checked by the first call, and so are parameters with a default, which a job
        may leave out.
        """
        try:
            hints = typing.get_type_hints(self.function, include_extras=True)
        except (NameError, TypeError):
            return
        required = [one.name for one in self._parameters.values() if one.default is inspect.Parameter.empty]
        for name in (*required, "return"):
            hint = hints.get(name, Any)
            if hint in _PLAIN or (name == "return" and hint in (typing.NoReturn, typing.Never)):
                continue
            if (fault := fault_of_type(hint)) is not None:
                path, found, allowed = fault
                where = f"result of {self.name}" if name == "return" else f"{self.name}.{name}"
                raise InvalidArguments(f"{where}{path}", found, allowed)

    @cached_property
    def _arguments(self) -> type[msgspec.Struct]:
        """Return a type with all arguments as fields, so that one decoder checks them all."""
        fields: list[Any] = []
        for name, parameter in self._parameters.items():
            hint = self._hints.get(name, Any)
            # An omitted argument is not in the payload: the default of the code that runs the job counts.
            fields.append((name, hint) if parameter.default is inspect.Parameter.empty else (name, hint, _ABSENT))
        try:
            arguments = msgspec.defstruct(f"arguments of {self.name}", fields, kw_only=True, forbid_unknown_fields=True)
            msgspec.json.Decoder(arguments)
        except TypeError as error:
            raise InvalidArguments(self.name, f"an annotation that JSON cannot carry: {error}", _CARRIED) from None
        return arguments


AnyTask: TypeAlias = Task[..., Any, Any]


class TaskDeclarer(Protocol):
    """What declares the tasks of batches and pipelines: the application."""

    def __call__(self, function: Callable[..., Any], name: str, aliases: tuple[str, ...], options: Options) -> AnyTask:
        """Declare a task."""
        ...


_ABSENT = msgspec.UNSET
_PLAIN = (Any, str, int, float, bool, type(None))
_CONTEXT_NAMES = frozenset({"ctx", "context", "c", "self", "cls"})
_CARRIED = "types that JSON can tell apart: numbers, strings, lists, dicts, dates, enums, dataclasses and the like"


def check_priority(value: int) -> int:
    """Return a priority if it is in range. `InvalidInput`."""
    if isinstance(value, bool) or not isinstance(value, int) or not -32768 <= value <= 32767:
        raise InvalidInput("priority", repr(value), "a whole number from -32768 to 32767, higher first")
    return value


def check_seconds(field: str, value: float) -> float:
    """Return a number of seconds if it is positive and below 10^9. `InvalidInput`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10**9:
        raise InvalidInput(field, repr(value), "a positive number of seconds below 10^9")
    return value


def _check_secret(paths: object) -> None:
    if not isinstance(paths, tuple) or not all(isinstance(one, str) and all(one.split(".")) for one in paths):
        raise InvalidSetting("secret", repr(paths)[:80], 'a tuple of paths such as ("card", "customer.iban")')


def _aliases(aliases: Sequence[str]) -> tuple[str, ...]:
    if isinstance(aliases, str):
        raise InvalidSetting("aliases", f"the string {aliases!r}", "a list of names")
    return tuple(aliases)


def name_of(function: Callable[..., Any]) -> str:
    """Return module and qualified name. The main program has the name under which it is imported, so that a worker of
    `shop:app` knows the jobs that `python shop.py` sends."""
    module = _main_module() if function.__module__ == "__main__" else function.__module__
    return f"{module}.{function.__qualname__}" if module else function.__qualname__


def _main_module() -> str:
    """Return the name under which the main program would be imported: the argument of `python -m`, else the name of its
    file; empty if there is neither, as at a prompt."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    return Path(getattr(main, "__file__", None) or "").stem


_WITH_CONTEXT = "a first parameter for the context, as in `def send(ctx: Context, user_id: int)`"


def _may_be_context(parameter: inspect.Parameter) -> bool:
    """Whether a first parameter is for the context. Annotations are compared as text, because at declaration they may
    name types that cannot be imported yet."""
    if parameter.annotation is inspect.Parameter.empty:
        return parameter.name in _CONTEXT_NAMES or parameter.name.startswith("_")
    text = parameter.annotation if isinstance(parameter.annotation, str) else repr(parameter.annotation)
    return "Context" in text or text in ("Any", "typing.Any", "object", "<class 'object'>")


def _parameters(name: str, function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters after the context. `InvalidArguments` if one cannot be given by name."""
    parameters = list(inspect.signature(function).parameters.values())
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not parameters or parameters[0].kind not in positional:
        raise InvalidArguments(name, "a function without a context", _WITH_CONTEXT)
    if not _may_be_context(parameters[0]):
        raise InvalidArguments(name, f"{parameters[0].name!r} as the first parameter", _WITH_CONTEXT)
    for parameter in parameters[1:]:
        if parameter.kind not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
            raise InvalidArguments(name, f"the parameter {parameter}", "parameters that can be given by name")
    return {parameter.name: parameter for parameter in parameters[1:]}
