"""Texts kept on disk: found again by what they are made of, made again where their file is of no use."""

from hypothesis import given
from hypothesis import strategies as st

from infra.files.kept_texts import KeptTexts


@given(st.dictionaries(st.tuples(st.text(), st.text()), st.text(), max_size=5))
def test_each_text_is_found_by_all_that_it_is_made_of_and_by_nothing_else(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("texts")
    for made_of, text in texts.items():
        KeptTexts(folder).keep(text, *made_of)
    for made_of, text in texts.items():
        assert KeptTexts(folder).find(*made_of) == text
    assert KeptTexts(folder).find("neither", "nor") == texts.get(("neither", "nor"))


def test_a_damaged_file_is_no_text_until_it_is_written_again(tmp_path):
    kept = KeptTexts(tmp_path / "new folder")
    kept.keep("a long text" * 99, "a problem")
    (file,) = (tmp_path / "new folder").iterdir()
    whole = file.read_bytes()
    for damaged in (b"", b"not compressed", whole[:-1], whole[:20], whole[:-4] + bytes(4)):
        file.write_bytes(damaged)
        assert kept.find("a problem") is None
    kept.keep("a long text" * 99, "a problem")
    assert file.read_bytes() == whole


def test_a_text_that_cannot_be_kept_is_no_error(tmp_path):
    (tmp_path / "file").touch()
    kept = KeptTexts(tmp_path / "file" / "folder")
    kept.keep("a text", "a problem")
    assert kept.find("a problem") is None
