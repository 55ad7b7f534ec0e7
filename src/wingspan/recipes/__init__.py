"""One file per system, its ablations beside it. `find` resolves what the shell calls NAME/VARIANT."""

import difflib
import importlib.util
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

from wingspan.recipe import DEFAULT_RANGES, Range, Recipe

NAMES = ("baseline", "bundling", "deep_span", "compress_generate", "conditional", "typed_spans", "discontinuous")


def variants(name: str) -> dict[str, Callable[[], Recipe]]:
    """The variants of a system; the one named "" is its default."""
    variants: dict[str, Callable[[], Recipe]] = import_module(f"wingspan.recipes.{name}").variants
    return variants


def find(name: str) -> Recipe:
    """A recipe by NAME, NAME/VARIANT, or the path of a Python file of yours with a function `recipe()`."""
    if name.endswith(".py"):
        module = import_file(Path(name))
        if not hasattr(module, "recipe"):
            raise ValueError(f"{name}: a recipe file needs a function recipe() that returns a wingspan.recipe.Recipe")
        recipe = module.recipe()
        if not isinstance(recipe, Recipe):
            raise ValueError(f"{name}: recipe() must return a wingspan.recipe.Recipe, not {type(recipe).__name__}")
        return recipe
    base, _, variant = name.partition("/")
    if base == "auto" and variant:
        raise ValueError(f"auto has no variant {variant!r}: it chooses among all recipes; give auto, or name one")
    system = _system(base)
    known = variants(system)
    if variant not in known:
        names = [v for v in known if v]
        raise ValueError(f"recipe {system!r} has no variant {variant!r}; {near(variant, names)} {', '.join(names)}")
    return known[variant]()


def _system(name: str) -> str:
    """The module of a system."""
    if name == "auto":
        raise ValueError("auto is chosen for one corpus, by `wingspan train` and `tune`; here, name a recipe")
    if name not in NAMES:
        raise ValueError(f"no recipe {name!r}; {near(name, NAMES)} {', '.join(NAMES)}")
    return name


def ranges(name: str) -> dict[str, Range]:
    """The ranges that a system declares for `wingspan tune`, for all its variants, otherwise `DEFAULT_RANGES`."""
    if name.endswith(".py"):
        module = import_file(Path(name))
    else:
        module = import_module(f"wingspan.recipes.{_system(name.partition('/')[0])}")
    declared: dict[str, Range] = getattr(module, "ranges", DEFAULT_RANGES)
    return dict(declared)


def near(name: str, known: list[str] | tuple[str, ...]) -> str:
    """A hint for a misspelt name, and the start of the list of all."""
    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean {close[0]!r}? There are" if close else "there are"


def import_file(path: Path) -> ModuleType:
    """Runs a Python file that the user named on purpose; its parts are then found under the file's name."""
    if not path.is_file():
        raise ValueError(f"{path}: no such Python file; check the path")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except (SyntaxError, ImportError, NameError, TypeError) as error:
        del sys.modules[path.stem]
        raise ValueError(f"{path}: this Python file does not run ({error})") from error
    return module
