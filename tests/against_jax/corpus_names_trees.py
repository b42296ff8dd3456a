"""Each name of jax.tree_util and jax.tree in use; a program has the name of what it calls."""

import dataclasses

from tests.against_jax.describe import Corpus


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    tree_util, tree = jax.tree_util, jax.tree

    def program(name):
        """Add a function as the program of this name."""
        return lambda function: corpus.add(name, function)

    example = {"b": [1, (2, None)], "a": 3}

    def paths(pairs):
        return [(tree_util.keystr(path), leaf) for path, leaf in pairs]

    @program("tree_util.DictKey")
    def _():
        key = tree_util.DictKey("a")
        return str(key), repr(key), key.key, key == tree_util.DictKey("a"), hash(key) == hash(key)

    @program("tree_util.SequenceKey")
    def _():
        key = tree_util.SequenceKey(2)
        return str(key), repr(key), key.idx, key == tree_util.SequenceKey(2)

    @program("tree_util.GetAttrKey")
    def _():
        key = tree_util.GetAttrKey("name")
        return str(key), repr(key), key.name, key == tree_util.GetAttrKey("name")

    @program("tree_util.FlattenedIndexKey")
    def _():
        key = tree_util.FlattenedIndexKey(1)
        return str(key), repr(key), key.key, key == tree_util.FlattenedIndexKey(1)

    @program("tree_util.KeyEntry")
    def _():
        path: tuple[tree_util.KeyEntry, ...] = tree_util.tree_flatten_with_path(example)[0][1][0]
        return [type(entry).__name__ for entry in path], str(tree_util.KeyEntry)

    @program("tree_util.KeyPath")
    def _():
        path: tree_util.KeyPath = tree_util.tree_leaves_with_path(example)[1][0]
        return isinstance(path, tuple), str(tree_util.KeyPath).startswith("tuple[")

    @program("tree_util.keystr")
    def _():
        path = tree_util.tree_flatten_with_path(example)[0][2][0]
        entries = tree_util.GetAttrKey("x"), tree_util.FlattenedIndexKey(1), "raw"
        simple = (
            tree_util.keystr(path, simple=True),
            tree_util.keystr(path, simple=True, separator="/"),
        )
        return tree_util.keystr(path), tree_util.keystr(entries), simple, tree_util.keystr(())

    @program("tree_util.Partial")
    def _():
        f = tree_util.Partial(lambda x, y, k: x + y * k, 1.0, k=3.0)
        nested = tree_util.Partial(f, 2.0)
        leaves = tree.leaves(nested)
        return f(2.0), nested(), leaves, jax.jit(lambda g, y: g(y))(f, 2.0)

    @program("tree_util.PyTreeDef")
    def _():
        structure = tree.structure(example)
        more = structure.num_leaves, structure.num_nodes, str(structure), len(structure.children())
        same = structure == tree.structure({"b": [7, (8, None)], "a": 9})
        composed = str(structure.compose(tree.structure((1, 2))))
        kinds = isinstance(structure, tree_util.PyTreeDef), structure.node_data()[0] is dict
        up = structure.flatten_up_to({"b": [[1, 2], (3, None)], "a": 4})
        return more, same, composed, kinds, up, structure.unflatten([1, 2, 3])

    @program("tree_util.all_leaves")
    def _():
        return (
            tree_util.all_leaves([1, 2]),
            tree_util.all_leaves([1, (2,)]),
            tree_util.all_leaves([]),
        )

    @program("tree_util.default_registry")
    def _():
        leaves, structure = tree_util.default_registry.flatten(example)
        one = tree_util.default_registry.flatten_one_level([1, (2, 3)])
        return leaves, str(structure), list(one[0]), tree_util.default_registry.flatten_one_level(1)

    @program("tree_util.flatten_one_level")
    def _():
        children, _ = tree_util.flatten_one_level({"a": (1, 2), "b": 3})
        return list(children), list(tree_util.flatten_one_level([(1,), 2])[0])

    @program("tree_util.flatten_one_level of a leaf")
    def _():
        return tree_util.flatten_one_level(1)

    @program("tree_util.flatten_one_level_with_keys")
    def _():
        pairs, _ = tree_util.flatten_one_level_with_keys({"a": (1, 2), "b": 3})
        return [(str(key), child) for key, child in pairs]

    @program("tree_util.is_tree_node")
    def _():
        kinds = list, tuple, dict, type(None), float, str, jax.Array, tree_util.Partial, set
        return [tree_util.is_tree_node(kind) for kind in kinds]

    class Pair:
        """Two values, to be registered in one way or another."""

        def __init__(self, x, y):
            self.x, self.y = x, y

        def tree_flatten(self):
            return (self.x, self.y), "aux"

        def tree_flatten_with_keys(self):
            return ((tree_util.GetAttrKey("x"), self.x), (tree_util.GetAttrKey("y"), self.y)), "aux"

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls(*children)

    def looked_at(pair):
        doubled = tree.map(lambda x: 2 * x, pair)
        return tree.leaves(pair), paths(tree.leaves_with_path(pair)), doubled.x, doubled.y

    def fresh():
        return type("Pair", (Pair,), {})

    @program("tree_util.register_pytree_node")
    def _():
        cls = fresh()
        none = tree_util.register_pytree_node(cls, lambda p: p.tree_flatten(), cls.tree_unflatten)
        return looked_at(cls(1, 2)), none

    @program("tree_util.register_pytree_node twice")
    def _():
        cls = fresh()
        for _ in range(2):
            tree_util.register_pytree_node(cls, lambda p: p.tree_flatten(), cls.tree_unflatten)

    @program("tree_util.register_pytree_node_class")
    def _():
        cls = fresh()
        return tree_util.register_pytree_node_class(cls) is cls, looked_at(cls(1, 2))

    @program("tree_util.register_pytree_with_keys")
    def _():
        cls = fresh()
        tree_util.register_pytree_with_keys(
            cls, lambda p: p.tree_flatten_with_keys(), cls.tree_unflatten
        )
        return looked_at(cls(1, 2))

    @program("tree_util.register_pytree_with_keys_class")
    def _():
        cls = fresh()
        return tree_util.register_pytree_with_keys_class(cls) is cls, looked_at(cls(1, 2))

    @program("tree_util.register_dataclass")
    def _():
        @tree_util.register_dataclass
        @dataclasses.dataclass
        class Pair:
            """Two values, of which a tree has the first."""

            x: int
            y: str = dataclasses.field(metadata={"static": True})

        named = dataclasses.make_dataclass("Named", ["x", "y"])
        tree_util.register_dataclass(named, data_fields=["y"], meta_fields=["x"])
        both = Pair(1, "b"), named(1, 2)
        return tree.leaves(both), paths(tree.leaves_with_path(both)), tree.map(str, both)[0].x

    @program("tree_util.register_dataclass of too few fields")
    def _():
        named = dataclasses.make_dataclass("Named", ["x", "y"])
        return tree_util.register_dataclass(named, data_fields=["y"], meta_fields=[])

    @program("tree_util.register_static")
    def _():
        cls = tree_util.register_static(type("Constant", (), {}))
        return tree.leaves((cls(), 1)), jax.jit(lambda c, x: x + 1)(cls(), 1.0)

    @program("tree_util.treedef_children")
    def _():
        return [str(child) for child in tree_util.treedef_children(tree.structure(example))]

    @program("tree_util.treedef_is_leaf")
    def _():
        return [tree_util.treedef_is_leaf(tree.structure(x)) for x in (1, [1], None, ())]

    @program("tree_util.treedef_tuple")
    def _():
        return str(tree_util.treedef_tuple([tree.structure(1), tree.structure([1, 2])]))

    # The functions that have a name in both modules; one entry of the table is called by both.
    shared = {
        "all": lambda f: (f([True, 1]), f([True, [0]]), f([]), f([(), None])),
        "broadcast": lambda f: (f((1, 2), ((0, 0), 0)), f(5, [1, {"a": 2}])),
        "flatten": lambda f: (
            f(example)[0],
            str(f(example)[1]),
            f(example, is_leaf=lambda x: isinstance(x, tuple))[0],
        ),
        "flatten_with_path": lambda f: (
            paths(f(example)[0]),
            str(f(example)[1]),
            paths(f(example, is_leaf=lambda x: x is None)[0]),
        ),
        "leaves": lambda f: (f(example), f(None), f(None, is_leaf=lambda x: x is None)),
        "leaves_with_path": lambda f: (paths(f(example)), paths(f(1))),
        "map": lambda f: (
            f(lambda x, y: x + y, example, example),
            f(lambda x: x, [None, 1], is_leaf=lambda x: x is None),
        ),
        "map_with_path": lambda f: f(
            lambda path, x, y: f"{tree_util.keystr(path)}{x + y}", example, example
        ),
        "reduce": lambda f: (
            f(lambda x, y: 10 * x + y, example),
            f(lambda x, y: 10 * x + y, example, 7),
            f(lambda x, y: x, [], 5),
        ),
        "reduce_associative": lambda f: (
            f(lambda x, y: x + y, example),
            f(lambda x, y: x + y, [], identity=4),
            f(lambda x, y: f"({x}{y})", list("abcde")),
        ),
        "structure": lambda f: (str(f(example)), str(f(example, is_leaf=lambda x: True))),
        "transpose": lambda f: f(
            tree.structure({"a": 0, "b": 0}), tree.structure([0, 0]), {"a": [1, 2], "b": [3, 4]}
        ),
        "unflatten": lambda f: f(tree.structure(example), [5, 6, 7]),
    }
    wrong = {
        "broadcast": lambda f: f((1, 2), (0, 0, 0)),
        "map": lambda f: f(lambda x, y: x, [1, 2], [1]),
        "reduce": lambda f: f(lambda x, y: x, []),
        "reduce_associative": lambda f: f(lambda x, y: x, []),
        "transpose": lambda f: f(tree.structure((0, 0)), tree.structure([0]), ((1,), (2,))),
        "unflatten": lambda f: f(tree.structure((0, 0)), [1]),
    }
    for name, use in shared.items():
        corpus.add(f"tree.{name}", lambda use=use, name=name: use(getattr(tree, name)))
        other = f"tree_{name}"
        corpus.add(f"tree_util.{other}", lambda use=use, n=other: use(getattr(tree_util, n)))
    for name, use in wrong.items():
        corpus.add(f"tree.{name} refuses", lambda use=use, name=name: use(getattr(tree, name)))

    @program("tree.static")
    def _():
        @jax.tree_util.register_dataclass
        @dataclasses.dataclass
        class Scaled:
            """A value, and a factor that is no leaf."""

            value: float
            factor: int = tree.static(default=3)

        return tree.leaves(Scaled(1.0)), tree.map(lambda x: 2 * x, Scaled(1.0, 5)).factor

    return corpus
