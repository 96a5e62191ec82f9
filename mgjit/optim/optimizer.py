"""`Optimizer`: what all optimisers do, whatever their rule.

A rule is written once, as arithmetic that tensors and numbers have in common (`update`).  `step()` goes through the
groups; of each,

1. the rule says what is the same for all parameters, such as the correction of a bias (`prepare`);
2. it gets each parameter with its gradient and what is remembered of it, and returns what these are to be;
3. that is assigned: to the elements of tensors, or to `data` and the elements of a `State`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import ArgumentError, ArgumentValueError, PrecisionError, described, user_location
from ..tensor.creation import asarray
from ..tensor.modes import no_grad
from ..tensor.tensor import Tensor
from .group import Group


class Optimizer:
    """The base class of optimisers; its own rule is to change nothing.

    A class derived from it defines `update`, and if needed `prepare` and `state_names`, and has `counts`.

    Args:
        params: the parameters: tensors with `requires_grad`, or objects with the numbers `data` and `grad`; or dicts,
            one for each group, with "params" and the options that are its own.  Names are passed over.
        defaults: the options of groups that have no others, by name; `lr` is one of them.
        further: `maximize=True` goes up the gradient instead of down. PyTorch's `foreach`, `fused`, `capturable` and
            `differentiable` change nothing.

    Attributes:
        param_groups: a list of groups: `optimizer.param_groups[0]["lr"] = 0.1` changes an option.
        counts: how many numbers are remembered of a group.

    Raises:
        ArgumentError, ArgumentValueError, GradientError, PrecisionError: an option or a parameter cannot be used.
    """

    counts = 0

    def __init__(self, params: Any, defaults: Mapping[str, Any], further: Mapping[str, Any] | None = None) -> None:
        further = further or {}
        if not further.keys() <= _FURTHER:
            unknown = ", ".join(sorted(further.keys() - _FURTHER))
            raise ArgumentError(f"{user_location()}: {type(self).__name__} has no option {unknown}.")
        if isinstance(params, Tensor) or not isinstance(params, Iterable):
            raise ArgumentError(
                f"{user_location()}: an optimiser needs a list of parameters, such as model.parameters(), not the "
                f"{described(params)}."
            )
        self.defaults = {**defaults, "maximize": bool(further.get("maximize", False))}
        self.param_groups: list[Group] = []
        given = list(params)
        if given and isinstance(given[0], tuple):  # named_parameters()
            given = [p for _, p in given]
        for group in given if given and isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Add a group: a dict with "params", and the options that are its own."""
        params = group["params"]
        params = [params] if isinstance(params, Tensor) or not isinstance(params, Iterable) else list(params)
        options = {**self.defaults, **{name: content for name, content in group.items() if name != "params"}}
        if options.keys() != self.defaults.keys():
            unknown = ", ".join(sorted(options.keys() - self.defaults.keys()))
            raise ArgumentValueError(
                f"{user_location()}: {type(self).__name__} has no option {unknown}, only {', '.join(self.defaults)}."
            )
        self.check(options)
        known = [id(p) for other in self.param_groups for p in other.params]
        if len({*known, *map(id, params)}) != len(known) + len(params):
            raise ArgumentValueError(
                f"{user_location()}: a parameter that is there twice would be updated twice. Name it once: "
                "list(dict.fromkeys(parameters))."
            )
        self.param_groups.append(Group(params, options, self.state_names(options), self.counts))

    # ---- the rule -----------------------------------------------------------------------------------

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise an error for options that make no sense: all are numbers, none is negative, betas lie in [0, 1)."""
        for name, content in options.items():
            for number in content if name == "betas" else [content]:
                if not hasattr(type(number), "__float__"):
                    raise ArgumentError(
                        f"{user_location()}: {type(self).__name__} with {name}={content!r}, which is no number."
                    )
                if isinstance(number, (int, float)) and not 0 <= number < (1 if name in _SHARES else float("inf")):
                    raise ArgumentValueError(f"{user_location()}: {type(self).__name__} with {name}={content!r}.")

    def state_names(self, options: Mapping[str, Any]) -> list[str]:
        """The names of the state of each parameter, such as moments."""
        return []

    def prepare(self, group: Group) -> Any:
        """What `update` needs to know of a group; changes its counts."""
        return group.lr

    def update(self, group: Group, prepared: Any, x: Any, g: Any, *state: Any) -> tuple[Any, ...]:
        """Return the next value of a parameter, and its next state.

        Args:
            prepared: from `prepare`.
            x, g: the parameter and its gradient: tensors or numbers.
            state: of the parameter, in the order of `state_names`.
        """
        return (x, *state)

    # ---- steps --------------------------------------------------------------------------------------

    def step(self, closure: Any = None) -> Any:
        """Change each parameter by the rule and its gradient; tensors that require no gradient stay as they are.

        Args:
            closure: is called first, and computes the gradients.

        Returns:
            what the closure returns.

        Raises:
            PrecisionError: the parameters have another type than when the optimiser was made.
        """
        found = None if closure is None else closure()
        with no_grad():
            for group in self.param_groups:
                if group.has_tensors:
                    self._change_tensors(group)
                else:
                    self._change_numbers(group)
        return found

    def _change_tensors(self, group: Group) -> None:
        if group.params[0].dtype != group.counts.dtype:
            raise PrecisionError(
                f"{user_location()}: the parameters have been {group.counts.dtype} when this optimiser was made, and "
                f"are {group.params[0].dtype} now. Make it after model.float() or the like."
            )
        prepared = self.prepare(group)
        for k, p in enumerate(group.params):
            g = p.grad
            if g is None:
                continue
            if group["maximize"]:
                g = -g
            state = [each[k] for each in group.state.values()]
            x, *remembered = self.update(group, prepared, p, g, *state)
            for tensor, new in zip(state, remembered):
                tensor[...] = new
            p[...] = x

    def _change_numbers(self, group: Group) -> None:
        prepared = self.prepare(group)
        states = list(group.state.values())
        for k, p in enumerate(group.params):
            g = -p.grad if group["maximize"] else p.grad
            x, *remembered = self.update(group, prepared, p.data, g, *[each[k] for each in states])
            for each, new in zip(states, remembered):
                each[k] = new
            p.data = x

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradient of each parameter to 0.0; there is always one."""
        for group in self.param_groups:
            if group.has_tensors:
                for tensor in group.params:
                    if tensor.requires_grad:
                        tensor.zero_grad()
            else:
                for p in group.params:
                    p.grad = 0.0

    # ---- saving -------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """A copy of everything but the parameters, of dicts, lists, numbers and tensors, in the form that PyTorch uses.

        Returns:
            "state": for each parameter, by its number, what is remembered of it; "param_groups": for each group its
            options, its counts, and the numbers of its parameters.
        """
        state: dict[int, dict[str, Any]] = {}
        groups = []
        for group in self.param_groups:
            first = len(state)
            for k in range(len(group.params)):
                state[first + k] = {name: _copied(each[k]) for name, each in group.state.items()}
            counts = [float(count) for count in group.counts]
            groups.append(
                {"lr": group.lr, **dict(group.options), "counts": counts, "params": list(range(first, len(state)))}
            )
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take over what `state_dict` has returned, of an optimiser of the same class over parameters of these shapes.

        Raises:
            ArgumentValueError: it is of other parameters or of another optimiser; nothing has changed then.
        """
        if not saved.keys() >= {"state", "param_groups"}:
            raise ArgumentValueError(f"{user_location()}: that is no state of an optimiser: it has {list(saved)}.")
        groups, state = saved["param_groups"], saved["state"]
        sizes = [len(group["params"]) for group in groups]
        if sizes != [len(group.params) for group in self.param_groups]:
            raise ArgumentValueError(
                f"{user_location()}: a state of groups of {sizes} parameters, for groups of "
                f"{[len(group.params) for group in self.param_groups]}."
            )
        found = []
        for group, other in zip(self.param_groups, groups):
            options = {name: content for name, content in other.items() if name not in ("params", "counts")}
            options.setdefault("maximize", False)  # of an older version
            rows = [state.get(number, {}) for number in other["params"]]
            names = self.state_names(options) if options.keys() == self.defaults.keys() else None
            if (
                names is None
                or any(row.keys() != set(names) for row in rows)
                or len(other.get("counts", ())) != self.counts
            ):
                raise ArgumentValueError(
                    f"{user_location()}: the state of another optimiser than {type(self).__name__}."
                )
            for p, row in zip(group.params, rows) if group.has_tensors else ():
                for name in names:
                    if asarray(row[name]).shape != p.shape:
                        raise ArgumentValueError(
                            f"{user_location()}: {name} of shape {asarray(row[name]).shape} for a parameter of shape "
                            f"{p.shape}."
                        )
            found.append((group, options, other["counts"], rows))
        for group, options, counts, rows in found:
            _take_over(group, options, self.state_names(options), counts, rows)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.param_groups))})"


#: Options of all optimisers.
_FURTHER = frozenset({"maximize", "foreach", "fused", "capturable", "differentiable"})
#: Options that are shares.
_SHARES = frozenset({"betas", "rho", "alpha"})


def _copied(content: Any) -> Any:
    return content.copy() if isinstance(content, Tensor) else content


def _take_over(group: Group, options: Mapping[str, Any], names: list[str], counts: Any, rows: list[Any]) -> None:
    """Let a group have other options and another state, in the same memory where there is any."""
    for name, content in options.items():
        if group[name] != content:
            group[name] = content
    if list(group.state) != names:
        group.state = {name: group.zeros() for name in names}
    for k, row in enumerate(rows):
        for name, each in group.state.items():
            if group.has_tensors:
                each[k][...] = row[name]
            else:
                each[k] = row[name]
    for k, count in enumerate(counts):
        group.counts[k] = count
