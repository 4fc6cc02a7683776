"""Encoders of retrieval; the sentence-transformers one on a model that is created here."""

import shutil

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from models.retrieval.encoders import HashingEncoder, SentenceEncoder
from schemas.errors import InputError
from schemas.recipes.data import RetrievalRecipe
from tasks.data.retrieval_index import encoder_of
from tasks.running.pins import pin_encoder

WORDS = ["[PAD]", "[UNK]", "take", "carrot", "counter", "fry"]
TEXTS = ["take carrot", "fry carrot", "counter"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """Return a folder with a tiny BERT, mean-pooled, as sentence-transformers saves it, and its network."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    torch.manual_seed(0)
    size = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    network = BertModel(BertConfig(vocab_size=len(WORDS), **size)).eval()
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    folder = tmp_path_factory.mktemp("encoder")
    network.save_pretrained(folder / "bert")
    PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(
        folder / "bert"
    )
    SentenceTransformer(modules=[Transformer(str(folder / "bert")), Pooling(16)]).save(str(folder / "sentences"))
    return folder / "sentences", network


def test_a_sentence_encoder_gives_the_unit_vectors_of_its_network(bert):
    folder, network = bert
    encoder = encoder_of(str(folder), None)
    assert isinstance(encoder, SentenceEncoder)
    found = encoder.encode(TEXTS)
    assert found.shape == (3, encoder.num_dimensions) == (3, 16)
    for vector, ids in zip(found, ([2, 3], [5, 3], [4]), strict=True):
        with torch.no_grad():
            mean = network(torch.tensor([ids])).last_hidden_state.mean(1)[0].numpy()
        assert vector == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)


def test_another_content_of_an_encoders_folder_is_another_pin(bert, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(bert[0], folder)
    before = pin_encoder(RetrievalRecipe(encoder=str(folder)))
    assert before == pin_encoder(RetrievalRecipe(encoder=str(folder)))
    config = folder / "1_Pooling" / "config.json"
    config.write_text(config.read_text() + " ")
    assert before != pin_encoder(RetrievalRecipe(encoder=str(folder)))


def test_a_hub_encoder_needs_its_commit():
    with pytest.raises(InputError, match=r"retrieval\.revision"):
        pin_encoder(RetrievalRecipe(encoder="somebody/something"))
    pinned = RetrievalRecipe(encoder="somebody/something", revision="abc")
    assert pin_encoder(pinned) == pinned


def test_states_that_share_lines_are_nearer():
    kitchen, same_kitchen, garden = HashingEncoder().encode(
        [
            "- you: kitchen\n- carrot: held\n- stove: on",
            "- you: kitchen\n- carrot: held\n- oven: off",
            "- you: garden\n- x: y",
        ]
    )
    assert kitchen @ same_kitchen > kitchen @ garden
