"""The input embeddings of a pretrained model as static vectors."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from tiny import sentence
from transformers import AutoModel, AutoTokenizer

import wingspan
from trainings import FAST, entities, train_documents
from wingspan.encoders.static import StaticEncoder, StaticPieces
from wingspan.model import tensors
from wingspan.recipes import find
from wingspan.training.run import with_encoder


def encode(encoder, *texts):
    return encoder(tensors(encoder.tokenize([sentence(text) for text in texts]), "cpu"))


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_a_word_is_the_mean_of_the_input_embeddings_of_its_pieces(folders, kind):
    encoder = StaticPieces(name=str(folders[kind])).eval()
    table = AutoModel.from_pretrained(folders[kind]).get_input_embeddings().weight
    tokenizer = AutoTokenizer.from_pretrained(folders[kind], add_prefix_space=True)
    texts = ["the protein", "Unheardofness of BRCA1 in the cell"]
    words = encode(encoder, *texts)
    assert words.top.shape == (2, 6, table.shape[1]) == (2, 6, encoder.size)
    for row, text in enumerate(texts):
        for at, word in enumerate(text.split()):
            pieces = tokenizer([word], is_split_into_words=True, add_special_tokens=False)["input_ids"]
            torch.testing.assert_close(words.top[row, at], table[pieces].mean(0))
    assert not words.top[0, 2:].any()
    assert not any(parameter.requires_grad for parameter in encoder.parameters())


def test_context_is_beside_the_vectors(folders):
    torch.manual_seed(0)
    encoder = StaticPieces(name=str(folders["bert"]), hidden=3, trained=True)
    size = encoder.table.embedding_dim
    assert encoder.size == size + 6
    one, other = encode(encoder, "the protein cell", "cell protein the").top
    assert torch.equal(one[1, :size], other[1, :size])
    assert not torch.allclose(one[1, size:], other[1, size:])
    one.sum().backward()
    assert encoder.table.weight.grad.any()


def test_a_saved_model_predicts_the_same_without_the_folder(tmp_path, folders):
    encoder = partial(StaticPieces, name=str(folders["bert"]), hidden=4)
    recipe = replace(find("baseline"), encoder=encoder, train=replace(FAST, epochs=2))
    model = wingspan.train(recipe, train=train_documents(), output=tmp_path / "model")
    again = wingspan.load(tmp_path / "model")
    text = train_documents()[0].text + " Unheard of words."
    assert entities(again.predict(text, threshold=0.05)) == entities(model.predict(text, threshold=0.05))
    with torch.no_grad():
        before, after = (encode(one.learner.model.encoder, text).top for one in (model, again))
    assert torch.equal(before, after)
    assert "the input embeddings of" in (tmp_path / "model" / "README.md").read_text()
    (tmp_path / "model" / "vocabulary.json").unlink()
    with pytest.raises(ValueError, match="the encoder's files are missing or damaged"):
        wingspan.load(tmp_path / "model")


def test_from_the_shell(folders):
    recipe = with_encoder(find("baseline"), f"static:{folders['bert']}")
    assert recipe.encoder.func is StaticPieces
    assert recipe.encoder.keywords == {"name": str(folders["bert"]), "hidden": 128, "dropout": 0.3}
    back = with_encoder(replace(recipe, encoder=partial(StaticPieces, name="x", trained=True)), "static:random")
    assert back.encoder.func is StaticEncoder
    assert back.encoder.keywords == {"trained": True, "vectors": None}
    with pytest.raises(ValueError, match="no-such-model.*cannot be loaded"):
        with_encoder(recipe, "static:no-such-model").encoder()
