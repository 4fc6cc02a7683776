"""Check for the packages with which Gymnasium creates an environment by its id, e.g. `package.module:Name-v0`."""

from importlib.util import find_spec

from schemas.errors import InputError


def require_packages(environment: str, name: str) -> None:
    """Raise if Gymnasium or the package that an id names is not installed.

    Raises:
        InputError: If one of them is missing.
    """
    if find_spec("gymnasium") is None:
        raise InputError(f"environment {environment!r} needs a package: pip install 'dreamgym[gymnasium]'")
    module, colon, _ = name.partition(":")
    package = module.partition(".")[0]
    if colon and find_spec(package) is None:
        raise InputError(
            f"environment {environment!r} needs the package {package!r}, which environment.options.id names: install it here"
        )
