"""Reads the code and says where it breaks the rules of the house.

Imports point one way, top to bottom of `ROOMS`; there is no cycle; nothing outside a module uses
its underscored names or reassigns its globals. Imports inside functions, for type checkers only,
and of modules that are named in a string count like any other.
"""

import ast
import re
from pathlib import Path

ROOMS = (
    *("cli", "server", "workflows", "experiments", "report", "inspection", "evaluation", "export"),
    *("selection", "models", "metrics", "features", "datasets", "embeddings", "core"),
)
_MODULE = re.compile(r"latem(\.[a-z_][a-z0-9_]*)*")


class Code:
    """All modules below a folder, parsed.

    Parameters
    ----------
    root : path
        Folder that holds the package `latem`.
    """

    def __init__(self, root):
        self.trees, self.packages = {}, set()
        for path in sorted(Path(root).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            if parts[-1] == "__init__":
                parts = parts[:-1]
                self.packages.add(".".join(parts))
            self.trees[".".join(parts)] = ast.parse(path.read_text(encoding="utf-8"))

    def imports(self, module):
        """Modules of latem that a module names, with the lines where it does."""
        return imported(self.trees[module], self.trees)

    def upward(self):
        """Imports that do not point down, as "module:line imports other"."""
        found = []
        for module in self.trees:
            for other, line in self.imports(module):
                here, there = room(module), room(other)
                if here is None:  # the doors may open any room
                    continue
                if there is None or ROOMS.index(there) < ROOMS.index(here):
                    found.append(f"{module}:{line} imports {other}")
        return found

    def cycles(self):
        """Groups of modules that import each other."""
        edges = {
            module: {other for other, _ in self.imports(module) if other != module}
            for module in self.trees
            if room(module) is not None
        }
        return [sorted(group) for group in strongly_connected(edges) if len(group) > 1]

    def strangers(self):
        """Files directly in the package that are no door."""
        doors = {"latem", "latem.__main__"}
        return sorted(
            module
            for module in self.trees
            if module.count(".") == 1 and module not in self.packages and module not in doors
        )

    def unknown_rooms(self):
        """Packages that the plan does not have."""
        return sorted({room(m) for m in self.trees} - {None, *ROOMS})


def room(module):
    """Room of a module; None for the doors."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] != "__main__" else None


def imported(tree, known):
    """Modules among `known` that some code imports or names in a string, with line numbers."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where they lead"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.append((inner if inner in known else node.module, node.lineno))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if _MODULE.fullmatch(node.value) and "." in node.value:
                found.append((node.value, node.lineno))
        elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
            start = str(node.values[0].value).rstrip(".")
            if _MODULE.fullmatch(start) and "." in start:
                found.append((start, node.lineno))
    return [(name, line) for name, line in found if name in known]


def private_uses(tree, private):
    """Uses of underscored names that other modules define, as (line, name).

    Parameters
    ----------
    tree : syntax tree of a module
    private : set of str
        Underscored names that are defined anywhere in the library.
    """
    defined = defined_names(tree)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "latem":
            names = [alias.name for alias in node.names if is_private(alias.name)]
            found += [(node.lineno, name) for name in names]
        elif isinstance(node, ast.Attribute) and node.attr in private - defined:
            found += [] if _is_own(node.value) else [(node.lineno, node.attr)]
    return found


def reassigned(tree):
    """Assignments to globals of latem's modules, as (line, name)."""
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            latem = isinstance(node, ast.Import) or str(node.module).split(".")[0] == "latem"
            for alias in node.names:
                if latem and (isinstance(node, ast.ImportFrom) or alias.name.startswith("latem")):
                    modules.add((alias.asname or alias.name).split(".")[0])
    found = []
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else targets
        for target in targets:
            if isinstance(target, ast.Attribute | ast.Subscript):
                owner = target.value
                while isinstance(owner, ast.Attribute | ast.Subscript):
                    owner = owner.value
                if isinstance(owner, ast.Name) and owner.id in modules:
                    found.append((node.lineno, ast.unparse(target)))
    return found


def defined_names(tree):
    """Names that a module defines: functions, classes, variables, attributes it assigns."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return names


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def _is_own(value):
    """Whether an attribute is taken of self, cls or super()."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == "super"
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def strongly_connected(edges):
    """Groups of nodes that can reach each other (Tarjan's algorithm)."""
    number, low, stack, on_stack, groups = {}, {}, [], set(), []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        on_stack.add(node)
        for other in sorted(edges.get(node, ())):
            if other not in edges:
                continue
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            group = []
            while not group or group[-1] != node:
                group.append(stack.pop())
                on_stack.discard(group[-1])
            groups.append(group)

    for node in sorted(edges):
        if node not in number:
            visit(node)
    return groups
