"""Self-contained HTML pages, written to home."""

from pathlib import Path
from typing import Any

import jinja2

from infra.files.durable_files import write_durably
from infra.pages import wording
from infra.settings import settings

_SHARED = Path(__file__).parent


def write_page(name: str, template: Path, **shown: Any) -> Path:
    """Render a template, escaping all values not marked safe, and return the path of the page."""
    page = _environment(template.parent).get_template(template.name).render(shown)
    path = settings().home.absolute() / "reports" / f"{name}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_durably(path, page.encode())
    return path


def _environment(folder: Path) -> jinja2.Environment:
    """Return an environment that finds templates of the folder and those that all pages share."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder, _SHARED]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update({one.__name__: one for one in wording.FILTERS})
    return environment
