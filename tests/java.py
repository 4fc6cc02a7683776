"""Marker that skips tests of ScienceWorld where Java is missing."""

import shutil

import pytest

needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="no Java: apt-get install default-jre-headless")
