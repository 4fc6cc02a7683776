"""Self-contained HTML pages, written to home."""

from pathlib import Path
from typing import Any

import jinja2

from infra.files.durable_files import write_durably
from infra.settings import settings


def write_page(name: str, template: Path, **shown: Any) -> Path:
    """Render a template, escaping all values not marked safe, and return the path of the page."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(template.read_text()).render(shown)
    path = settings().home.absolute() / "reports" / f"{name}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_durably(path, page.encode())
    return path
