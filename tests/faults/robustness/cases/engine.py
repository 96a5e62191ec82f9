"""Bad inputs: state, Values, functions and networks."""

from __future__ import annotations

from tests.faults.robustness.bad_inputs import Case

STATE_AND_ENGINE = [
    Case(
        "mgjit.state(3)",
        "ArgumentError",
        "user.py:1: a State is made of a list of numbers, not of the int 3. Pass the .data of Values.",
    ),
    Case(
        'mgjit.state(["a"])',
        "ArgumentError",
        "user.py:1: a State is made of a list of numbers, not of the list ['a']. Pass the .data of Values.",
    ),
    Case(
        "mgjit.state([None])",
        "ArgumentError",
        "user.py:1: a State is made of a list of numbers, not of the list [None]. Pass the .data of Values.",
    ),
    Case(
        "mgjit.state([w])",
        "ArgumentError",
        "user.py:1: a State is made of a list of numbers, not of the list [Value(data=2.0, grad=0.0)]. "
        "Pass the .data of Values.",
    ),
    Case(
        "mgjit.state([1j])",
        "ArgumentError",
        "user.py:1: a State is made of a list of numbers, not of the list [1j]. Pass the .data of Values.",
    ),
    Case(
        "mgjit.zeros(-1)",
        "ArgumentValueError",
        "user.py:1: zeros needs a number of elements, not the int -1.",
    ),
    Case(
        "mgjit.zeros(1.5)",
        "ArgumentValueError",
        "user.py:1: zeros needs a number of elements, not the float 1.5.",
    ),
    Case(
        'mgjit.zeros("3")',
        "ArgumentValueError",
        "user.py:1: zeros needs a number of elements, not the str '3'.",
    ),
    Case(
        "s[2]",
        "IndexRangeError",
        "user.py:1: index 2 of a State of 2 elements.",
    ),
    Case(
        's["a"]',
        "ArgumentError",
        "user.py:1: the index of a State is an int, not the str 'a'.",
    ),
    Case(
        's[0] = "x"',
        "ArgumentError",
        "user.py:1: an element of a State is a number, not the str 'x'.",
    ),
    Case(
        "s[0] = w",
        "ArgumentError",
        "user.py:1: an element of a State is a number, not the Value Value(data=2.0, grad=0.0).",
    ),
    Case(
        "s[:] = [1.0]",
        "ArgumentValueError",
        "user.py:1: a State has a fixed length: 2 elements cannot become 1. Make a new one: mgjit.state(values).",
    ),
    Case(
        "s[5] = 1.0",
        "IndexRangeError",
        "user.py:1: index 5 of a State of 2 elements.",
    ),
    Case(
        'Value("3")',
        "ArgumentError",
        "user.py:1: a Value needs a real number, not str '3'.",
    ),
    Case(
        "Value(None)",
        "ArgumentError",
        "user.py:1: a Value needs a real number, not NoneType None.",
    ),
    Case(
        "Value([1.0])",
        "ArgumentError",
        "user.py:1: a Value needs a real number, not list [1.0].",
    ),
    Case(
        "Value(1j)",
        "ArgumentError",
        "user.py:1: a Value needs a real number, not complex 1j.",
    ),
    Case(
        "Value(w)",
        "ArgumentError",
        "user.py:1: a number is needed, not the Value 2.0: pass its .data.",
    ),
    Case(
        'w.data = "3"',
        "ArgumentError",
        "user.py:1: a Value needs a real number, not str '3'.",
    ),
    Case(
        "w.grad = w",
        "ArgumentError",
        "user.py:1: a number is needed, not the Value 2.0: pass its .data.",
    ),
    Case(
        'w + "3"',
        "ArgumentError",
        "user.py:1: a Value needs a real number, not str '3'.",
    ),
    Case(
        "w * None",
        "ArgumentError",
        "user.py:1: a Value needs a real number, not NoneType None.",
    ),
    Case(
        "w ** w",
        "ArgumentError",
        "user.py:1: Value ** Value is not defined: write mgjit.exp(b * mgjit.log(a)).",
    ),
    Case(
        'mgjit.exp("1")',
        "ArgumentError",
        "user.py:1: exp needs a number or a Value, not the str '1'.",
    ),
    Case(
        "mgjit.log(None)",
        "ArgumentError",
        "user.py:1: log needs a number or a Value, not the NoneType None.",
    ),
    Case(
        "mgjit.sqrt([4.0])",
        "ArgumentError",
        "user.py:1: sqrt needs a number or a Value, not the list [4.0].",
    ),
    Case(
        "mgjit.tanh(1j)",
        "ArgumentError",
        "user.py:1: tanh needs a number or a Value, not the complex 1j.",
    ),
    Case(
        'mgjit.relu("x")',
        "ArgumentError",
        "user.py:1: relu needs a number or a Value, not the str 'x'.",
    ),
    Case(
        'mgjit.maximum("a", 1.0)',
        "ArgumentError",
        "user.py:1: maximum needs a number or a Value, not the str 'a'.",
    ),
    Case(
        'mgjit.maximum(1.0, "a")',
        "ArgumentError",
        "user.py:1: maximum needs a number or a Value, not the str 'a'.",
    ),
    Case(
        "mgjit.minimum(None, w)",
        "ArgumentError",
        "user.py:1: minimum needs a number or a Value, not the NoneType None.",
    ),
    Case(
        "mgjit.maximum(w, None)",
        "ArgumentError",
        "user.py:1: a Value needs a real number, not NoneType None.",
    ),
    Case(
        "mgjit.one_hot(3, 3)",
        "IndexRangeError",
        "user.py:1: one_hot: the index 3 is not in range(3).",
    ),
    Case(
        "mgjit.one_hot(-1, 3)",
        "IndexRangeError",
        "user.py:1: one_hot: the index -1 is not in range(3).",
    ),
    Case(
        "mgjit.one_hot(0.5, 3)",
        "IndexRangeError",
        "user.py:1: one_hot: the index 0.5 is not an integer.",
    ),
    Case(
        'mgjit.one_hot("a", 3)',
        "ArgumentError",
        "user.py:1: one_hot: the index must be an integer, not the str 'a'.",
    ),
    Case(
        'mgjit.one_hot(0, "3")',
        "ArgumentValueError",
        "user.py:1: one_hot needs a length of at least 1, not the str '3'.",
    ),
    Case(
        "mgjit.take([1.0, 2.0], 2)",
        "IndexRangeError",
        "user.py:1: take: the index 2 is not in range(2).",
    ),
    Case(
        "mgjit.take([1.0, 2.0], -1)",
        "IndexRangeError",
        "user.py:1: take: the index -1 is not in range(2).",
    ),
    Case(
        "mgjit.take([1.0, 2.0], 0.5)",
        "IndexRangeError",
        "user.py:1: take: the index 0.5 is not an integer.",
    ),
    Case(
        'mgjit.take([1.0, 2.0], "0")',
        "ArgumentError",
        "user.py:1: take: the index must be an integer, not the str '0'.",
    ),
    Case(
        "mgjit.take([1.0], w)",
        "ArgumentError",
        "user.py:1: take: the index must be an integer, not the Value Value(data=2.0, grad=0.0).",
    ),
    Case(
        "mgjit.take(3.0, 0)",
        "ArgumentError",
        "user.py:1: take needs a list or tuple to take from, not the float 3.0.",
    ),
    Case(
        "mgjit.take({}, 0)",
        "ArgumentError",
        "user.py:1: take needs a list or tuple to take from, not the dict {}.",
    ),
    Case(
        "mgjit.dot([1.0], [1.0, 2.0])",
        "ArgumentValueError",
        "user.py:1: dot of 1 and 2 elements: give it two lists of equal lengths.",
    ),
    Case(
        "mgjit.dot(1.0, 2.0)",
        "ArgumentError",
        "user.py:1: dot needs two lists, not the float 1.0.",
    ),
    Case(
        'mgjit.dot([w], ["a"])',
        "ArgumentError",
        "user.py:1: a Value needs a real number, not str 'a'.",
    ),
    Case(
        "mgjit.nn.MLP(2, 3)",
        "ArgumentError",
        "user.py:1: nouts must be a list of the sizes of the layers, not the int 3.",
    ),
    Case(
        'mgjit.nn.MLP("2", [3])',
        "ArgumentValueError",
        "user.py:1: nin must be an int of at least 0, not the str '2'.",
    ),
    Case(
        "mgjit.nn.MLP(-1, [1])",
        "ArgumentValueError",
        "user.py:1: nin must be an int of at least 0, not the int -1.",
    ),
    Case(
        "mgjit.nn.MLP(2, [1.5])",
        "ArgumentValueError",
        "user.py:1: nout must be an int of at least 0, not the float 1.5.",
    ),
    Case(
        "mgjit.nn.Neuron(2)([1.0])",
        "ArgumentValueError",
        "user.py:1: ReLUNeuron(2) got 1 inputs; it takes 2.",
    ),
    Case(
        "mgjit.nn.Neuron(2)(1.0)",
        "ArgumentError",
        "user.py:1: ReLUNeuron(2) needs a list of inputs, not the float 1.0.",
    ),
    Case(
        "model([1.0])",
        "ArgumentValueError",
        "user.py:1: ReLUNeuron(2) got 1 inputs; it takes 2.",
    ),
    Case(
        'model("ab")',
        "ArgumentError",
        "user.py:1: a Value needs a real number, not str 'a'.",
    ),
    Case(
        'mgjit.nn.Layer(2, "3")',
        "ArgumentValueError",
        "user.py:1: nout must be an int of at least 0, not the str '3'.",
    ),
]
