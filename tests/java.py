"""Whether there is Java to play ScienceWorld in."""

import shutil

import pytest

needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="no Java: apt-get install default-jre-headless")
